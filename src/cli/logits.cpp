#include <charconv>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "base/npy.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/numbers.h"
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
        size_t at = 0;
        const auto skip_spaces = [&] {
            while (at < tokens.size() && tokens[at] == ' ') ++at;
        };
        while (true) {
            skip_spaces();
            int32_t token = 0;
            const char* const begin = tokens.data() + at;
            const auto [end, error] = std::from_chars(begin, tokens.data() + tokens.size(), token);
            if (error != std::errc{} || token < 0) {
                fail(
                    "--tokens \"{}\": character {}: expected a token id (a whole number from 0 to "
                    "{}), "
                    "as in 1,2,3",
                    tokens, at + 1, INT32_MAX);
            }
            result.push_back(token);
            at = static_cast<size_t>(end - tokens.data());
            skip_spaces();
            if (at == tokens.size()) return result;
            if (tokens[at] != ',') {
                fail("--tokens \"{}\": character {}: expected a comma, as in 1,2,3", tokens,
                     at + 1);
            }
            ++at;
        }
    }

    /// A result that took the model's place would be the end of it.
    void refuse_to_overwrite(const Model& opened) const {
        for (const MappedFile& part : opened.file().parts()) {
            std::error_code ignored;
            if (std::filesystem::equivalent(output, part.path(), ignored)) {
                fail("-o {}: that is the model itself; name another file", output);
            }
        }
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
        refuse_to_overwrite(*loaded.model);
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
                    "How many of them run as one batch; the rest one by one (default: all)")
        ->check(whole_number(0, INT32_MAX));
    sub->add_option("-o,--output", command->output, "File to write: float32 [n_tokens, n_vocab]")
        ->required();
    command->plan.add(*sub);
    command->context.add(*sub);
    sub->footer("Example:\n  pleat logits model.gguf --tokens 1,2,3,4 --prefill 3 -o out.npy");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
