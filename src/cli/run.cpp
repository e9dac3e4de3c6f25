#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/escapes.h"
#include "cli/interrupt.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/sampling_options.h"
#include "cli/standard_output.h"
#include "cli/text_file.h"
#include "generate/generate.h"
#include "generate/prompt.h"
#include "plan/cost.h"
#include "text/sampler.h"
#include "text/tokenizer.h"
#include "text/utf8_stream.h"

namespace pleat::cli {
namespace {

using nlohmann::ordered_json;

/// 0 stands for a rate that was not measured.
ordered_json rate_json(double rate) { return rate > 0.0 ? ordered_json(rate) : ordered_json(); }

std::string rate_text(double rate) {
    return rate > 0.0 ? fmt::format(", {:.2f} tokens/s", rate) : std::string();
}

ordered_json text_or_null(const std::string& text) {
    return text.empty() ? ordered_json() : ordered_json(to_utf8(text));
}

struct RunCommand {
    ModelArgument model;
    PlanOptions plan;
    ContextOptions context;
    SamplingOptions sampling;
    std::string prompt;
    std::string prompt_file;
    std::string system_prompt;
    std::string system_prompt_file;
    int32_t n_predict = -1;
    std::vector<std::string> stops;
    bool escape = true;
    bool chat = false;
    bool special = false;
    bool display_prompt = true;
    bool json = false;

    std::string given_text(const std::string& text, const std::string& file,
                           std::string_view what) const {
        std::string result = text;
        if (!file.empty()) {
            result = read_text_file(file, what);
            if (result.ends_with('\n')) result.pop_back();  // the editor's, not the prompt's
        }
        return escape ? process_escapes(result) : result;
    }

    std::vector<int32_t> tokens_of_prompt(const Tokenizer& tokenizer) const {
        const std::string text = given_text(prompt, prompt_file, "the prompt");
        const std::string system =
            given_text(system_prompt, system_prompt_file, "the system prompt");
        if (!chat) {
            if (!system.empty()) {
                fail("--system-prompt is part of a chat: give --chat too, or put it into -p");
            }
            return prompt_tokens(tokenizer, text);
        }
        if (text.empty()) fail("--chat needs what the user says: give it with -p or -f");
        return chat_prompt_tokens(tokenizer, system, text);
    }

    GenerationParams generation_params() const {
        GenerationParams params{
            .sampling = sampling.params(), .n_predict = n_predict, .stops = {}, .special = special};
        for (const std::string& stop : stops) {
            params.stops.push_back(escape ? process_escapes(stop) : stop);
        }
        return params;
    }

    void run() const {
        // What can be wrong in flags, prompt and grammar is said before any weight is read.
        const GenerationParams params = generation_params();
        open_model(model.model());  // an architecture that is not supported is named first
        const Tokenizer tokenizer = Tokenizer::open(model.model());
        { const Sampler checked(params.sampling, tokenizer); }
        const std::vector<int32_t> tokens = tokens_of_prompt(tokenizer);
        const Loaded loaded = load_context(model, plan, context, [&](ContextSettings& settings) {
            check_prompt_size(tokens.size(), settings.cache.n_cells());
        });

        StandardOutput output;
        if (!json && display_prompt && !chat && n_predict != 0) {
            std::string echo;
            for (const int32_t token : tokens) echo += tokenizer.piece(token, special);
            output.write(echo);
        }
        const InterruptGuard guard(*loaded.context);
        const Generated generated =
            generate(*loaded.context, tokenizer, tokens, params,
                     {.on_text =
                          [&](std::string_view text) {
                              if (!json) output.write(text);
                          },
                      .cancelled = [&] { return guard.interrupted() || output.failed(); }});
        output.write(json ? as_json(loaded, generated).dump() + "\n" : "\n");
        output.check();
        if (!context.quiet()) fmt::print(stderr, "{}", timings_text(loaded, generated));
        if (guard.interrupted()) throw CLI::RuntimeError(interrupted_status);
    }

    static PlanCost cost(const Loaded& loaded) {
        const Context& c = *loaded.context;
        return plan_cost(c.plan(), c.model().shape(), c.settings().cache);
    }

    static double weight_bytes_per_second(const Loaded& loaded, const Generated& g) {
        return static_cast<double>(cost(loaded).weight_read_bytes) *
               g.generation_tokens_per_second();
    }

    static std::string timings_text(const Loaded& loaded, const Generated& g) {
        const double bytes = weight_bytes_per_second(loaded, g);
        return fmt::format(
            "load:       {:.1f} ms\n"
            "prompt:     {} tokens in {:.1f} ms{}\n"
            "generation: {} tokens in {:.1f} ms{}{}\n"
            "end:        {}, seed {}{}\n",
            loaded.load_ms, g.n_prompt, g.prompt_ms, rate_text(g.prompt_tokens_per_second()),
            g.tokens.size(), g.generation_ms, rate_text(g.generation_tokens_per_second()),
            bytes > 0.0
                ? fmt::format(", {}/s of weights", format_bytes(static_cast<uint64_t>(bytes)))
                : "",
            finish_reason_name(g.reason), g.seed,
            g.logits_hash.empty() ? "" : ", last logits " + g.logits_hash);
    }

    ordered_json as_json(const Loaded& loaded, const Generated& g) const {
        std::vector<std::string> warnings = context.warnings();
        const LayerPlan& p = loaded.context->plan();
        warnings.insert(warnings.end(), p.warnings().begin(), p.warnings().end());
        return {{"model", to_utf8(model.model())},
                {"plan", p.canonical()},
                {"hash", p.hash()},
                {"prompt_tokens", g.n_prompt},
                {"generated_tokens", g.tokens.size()},
                {"tokens", g.tokens},
                {"text", g.text},
                {"finish_reason", finish_reason_name(g.reason)},
                {"stop", text_or_null(g.stop)},
                {"seed", g.seed},
                {"timings",
                 {{"load_ms", loaded.load_ms},
                  {"prompt_ms", g.prompt_ms},
                  {"generation_ms", g.generation_ms}}},
                {"prompt_tokens_per_second", rate_json(g.prompt_tokens_per_second())},
                {"generation_tokens_per_second", rate_json(g.generation_tokens_per_second())},
                {"weight_read_bytes_per_second", rate_json(weight_bytes_per_second(loaded, g))},
                {"weight_read_bytes_per_token", cost(loaded).weight_read_bytes},
                {"cache_bytes", loaded.context->cache_bytes()},
                {"logits_hash", text_or_null(g.logits_hash)},
                {"warnings", warnings}};
    }

    void add_prompt(CLI::App& app) {
        const std::string group = "Prompt";
        CLI::Option* const text =
            app.add_option("-p,--prompt", prompt, "The text to continue; none = from BOS");
        text->group(group);
        app.add_option("-f,--file", prompt_file,
                       "The same from a file, less one newline at its end; - = standard input")
            ->excludes(text)
            ->group(group);
        app.add_flag("-e,--escape,!--no-escape", escape,
                     "Read \\n \\r \\t \\' \\\" \\\\ \\xHH in prompts and stop strings (default), "
                     "or do not")
            ->group(group);
        app.add_flag("--chat", chat,
                     "The prompt is what a user says: put it into the model's chat template")
            ->group(group);
        CLI::Option* const system = app.add_option("--system-prompt", system_prompt,
                                                   "-sys: the system's message of the chat");
        system->group(group);
        app.add_option("--system-prompt-file", system_prompt_file, "-sysf: the same from a file")
            ->excludes(system)
            ->group(group);
    }

    void add_output(CLI::App& app) {
        const std::string group = "Output";
        app.add_option("-n,--predict,--n-predict", n_predict,
                       "Tokens to generate at most; -1 = until the end or a full context")
            ->check(CLI::Range(-2, INT32_MAX))
            ->capture_default_str()
            ->group(group);
        app.add_option("-r,--reverse-prompt,--stop", stops,
                       "End before this text; may be given several times")
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
            ->group(group);
        app.add_flag("--special", special, "-sp: show control tokens")->group(group);
        app.add_flag("--display-prompt,!--no-display-prompt", display_prompt,
                     "Print the prompt before the text (default, except with --chat), or do not")
            ->group(group);
        app.add_flag("--json", json, "One JSON object on the standard output instead of the text")
            ->group(group);
    }
};

}  // namespace

void add_run(CLI::App& app) {
    auto command = std::make_shared<RunCommand>();
    CLI::App* const sub = app.add_subcommand("run", "Continue a prompt");
    command->model.add(*sub);
    command->add_prompt(*sub);
    command->add_output(*sub);
    command->plan.add(*sub);
    command->sampling.add(*sub);
    command->context.add(*sub);
    sub->footer(
        "Examples:\n"
        "  pleat run model.gguf -p \"Once upon a time\" -n 128\n"
        "  pleat run model.gguf -p \"Once upon a time\" -n 128 --repeat-layers \"26,34\"\n"
        "  pleat run model.gguf --chat -p \"What is 2 + 2?\" --temp 0 --drop-attention \"3,7\"\n"
        "  pleat run model.gguf -f prompt.txt -n 64 --seed 42 --json");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
