#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "arch/registry.h"
#include "base/error.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/numbers.h"
#include "cli/options.h"
#include "cli/text_file.h"
#include "lab/perplexity.h"
#include "text/tokenizer.h"

namespace pleat::cli {
namespace {

struct PerplexityCommand {
    ModelArgument model;
    PlanOptions plan;
    ContextOptions context;
    std::string text_file;
    uint32_t n_ctx = 512;
    size_t max_chunks = SIZE_MAX;
    bool json = false;

    std::string read_text() const {
        std::string text = read_text_file(text_file, "the text");
        // Stock's tools leave out one newline at the end of a file.
        if (text.ends_with('\n')) text.pop_back();
        return text;
    }

    void run() const {
        const std::string text = read_text();
        open_model(model.model());  // an architecture that is not supported is named first
        const Tokenizer tokenizer = Tokenizer::open(model.model());
        const std::vector<int32_t> tokens = tokenizer.tokenize(text, true, false);
        const Loaded loaded = load_context(model, plan, context, [&](ContextSettings& settings) {
            settings.cache.n_ctx = n_ctx;
            settings.cache.n_seq = perplexity_sequences(n_ctx, settings.n_batch);
        });
        const Perplexity result =
            perplexity(*loaded.context, tokens, n_ctx, tokenizer.add_bos() ? tokenizer.bos() : -1,
                       max_chunks, [&](const Perplexity& so_far) {
                           if (context.quiet()) return;
                           fmt::print(stderr, "chunk {}: {:.4f}\n", so_far.n_chunks, so_far.value);
                       });
        if (json) {
            fmt::print("{}\n", nlohmann::ordered_json{{"model", model.model()},
                                                      {"plan", loaded.context->plan().canonical()},
                                                      {"hash", loaded.context->plan().hash()},
                                                      {"perplexity", result.value},
                                                      {"error", result.error},
                                                      {"n_ctx", n_ctx},
                                                      {"n_chunks", result.n_chunks},
                                                      {"n_tokens_scored", result.n_tokens}}
                                   .dump());
        } else {
            fmt::print("Final estimate: PPL = {:.4f} +/- {:.5f}\n", result.value, result.error);
        }
    }
};

}  // namespace

void add_perplexity(CLI::App& app) {
    auto command = std::make_shared<PerplexityCommand>();
    CLI::App* const sub = app.add_subcommand(
        "perplexity", "Score a text: the number of llama.cpp's perplexity tool at the same -c");
    command->model.add(*sub);
    sub->add_option("-f,--file", command->text_file, "Text file to score")->required();
    sub->add_option("-c,--ctx-size", command->n_ctx, "Tokens per chunk; the second half is scored")
        ->check(whole_number(4, 1 << 30))
        ->capture_default_str();
    sub->add_option("--chunks", command->max_chunks, "Score at most this many chunks")
        ->check(whole_number(1, INT32_MAX));
    sub->add_flag("--json", command->json, "One JSON object instead of text");
    command->plan.add(*sub);
    command->context.add(*sub, false);
    sub->footer(
        "Examples:\n"
        "  pleat perplexity model.gguf -f text.txt\n"
        "  pleat perplexity model.gguf -f text.txt -c 1024 --drop-attention \"3,7\"");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
