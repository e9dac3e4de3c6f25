#include <charconv>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "base/npy.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/options.h"

namespace pleat::cli {
namespace {

struct LogitsCommand {
    ModelArgument model;
    PlanOptions plan;
    ContextOptions context;
    std::string tokens;
    size_t prefill = 0;
    std::string output;

    std::vector<int32_t> parse_tokens() const {
        std::vector<int32_t> result;
        const char* at = tokens.data();
        const char* const end = at + tokens.size();
        while (at != end) {
            int32_t token = 0;
            const auto [next, error] = std::from_chars(at, end, token);
            const bool more = next != end && *next == ',' && next + 1 != end;
            if (error != std::errc{} || token < 0 || (next != end && !more)) {
                fail(
                    "--tokens \"{}\": character {} is not part of a list of token ids such as "
                    "1,2,3",
                    tokens, at - tokens.data() + 1);
            }
            result.push_back(token);
            at = next == end ? next : next + 1;
        }
        if (result.empty()) fail("--tokens is empty, expected a list of token ids such as 1,2,3");
        return result;
    }

    void run() {
        const std::vector<int32_t> ids = parse_tokens();
        const size_t n_prefill = prefill == 0 ? ids.size() : prefill;
        if (n_prefill > ids.size()) {
            fail("--prefill {} is more than the {} tokens given", n_prefill, ids.size());
        }
        const auto loaded = load_context(model, plan, context, [&](ContextSettings& settings) {
            // The first tokens are one batch, whatever -b says.
            settings.n_batch = std::max(settings.n_batch, static_cast<uint32_t>(n_prefill));
            if (!context.context_size_given()) {
                settings.cache.n_ctx =
                    std::max(settings.cache.n_ctx, static_cast<uint32_t>(ids.size()));
            }
        });
        Context& c = *loaded.context;
        std::vector<float> rows;
        rows.reserve(ids.size() * c.n_vocab());
        for (size_t i = 0; i < ids.size();) {
            const size_t n = i == 0 ? n_prefill : 1;
            if (c.decode(0, std::span(ids).subspan(i, n), true) != DecodeStatus::ok) {
                fail("{} tokens do not fit into a context of {}; give a larger one with -c",
                     ids.size(), c.settings().cache.n_cells());
            }
            for (size_t row = 0; row < c.n_outputs(); ++row) {
                const auto logits = c.logits(row);
                rows.insert(rows.end(), logits.begin(), logits.end());
            }
            i += n;
        }
        write_npy(output, rows, ids.size(), c.n_vocab());
    }
};

}  // namespace

void add_logits(CLI::App& app) {
    auto command = std::make_shared<LogitsCommand>();
    CLI::App* const sub =
        app.add_subcommand("logits", "Write the logits of given tokens as a NumPy file");
    command->model.add(*sub);
    sub->add_option("--tokens", command->tokens, "Token ids, as in 1,2,3")->required();
    sub->add_option("--prefill", command->prefill,
                    "How many of them run as one batch; the rest one by one (default: all)");
    sub->add_option("-o,--output", command->output, "File to write: float32 [n_tokens, n_vocab]")
        ->required();
    command->plan.add(*sub);
    command->context.add(*sub);
    sub->footer("Example:\n  pleat logits model.gguf --tokens 1,2,3,4 --prefill 3 -o out.npy");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
