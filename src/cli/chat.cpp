#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "arch/registry.h"
#include "base/error.h"
#include "chat/chat_format.h"
#include "cli/chat_loop.h"
#include "cli/chat_settings.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/text_file.h"
#include "text/tokenizer.h"

namespace pleat::cli {
namespace {

struct ChatCommand {
    ModelArgument model;
    PlanOptions plan;
    ContextOptions context;
    ChatSettings settings;
    std::string system;
    std::string system_file;
    std::string chat_template;
    std::string chat_template_file;

    std::string template_text() const {
        if (chat_template_file.empty()) return chat_template;
        return read_text_file(chat_template_file, "the chat template");
    }

    std::string system_text() const {
        if (system_file.empty()) return system;
        std::string text = read_text_file(system_file, "the system prompt");
        if (text.ends_with('\n')) text.pop_back();  // the editor's
        return text;
    }

    void run() const {
        // What can be wrong in flags, template and grammar is said before any weight is read.
        open_model(model.model());  // an architecture that is not supported is named first
        const Tokenizer tokenizer = Tokenizer::open(model.model());
        settings.params(tokenizer);
        const ChatFormat format(tokenizer, template_text());
        const std::string first = system_text();
        Loaded loaded = load_context(model, plan, context);
        if (!context.quiet()) {
            for (const std::string& warning : format.warnings()) {
                fmt::print(stderr, "warning: {}\n", warning);
            }
        }
        ChatLoop loop(std::move(loaded), plan, context.quiet(), tokenizer, format, settings, first);
        const int status = loop.run();
        if (status != 0) throw CLI::RuntimeError(status);
    }

    void add_chat(CLI::App& app) {
        const std::string group = "Chat";
        CLI::Option* const text =
            app.add_option("--system,--system-prompt", system, "-sys: the system's message");
        text->group(group);
        app.add_option("--system-prompt-file", system_file, "-sysf: the same from a file")
            ->excludes(text)
            ->group(group);
        CLI::Option* const jinja = app.add_option(
            "--chat-template", chat_template, "Jinja text to use instead of the model's template");
        jinja->group(group);
        app.add_option("--chat-template-file", chat_template_file, "The same from a file")
            ->excludes(jinja)
            ->group(group);
    }
};

}  // namespace

void add_chat(CLI::App& app) {
    auto command = std::make_shared<ChatCommand>();
    CLI::App* const sub = app.add_subcommand("chat", "Talk with a model");
    command->model.add(*sub);
    command->add_chat(*sub);
    command->plan.add(*sub);
    command->settings.add(*sub);
    command->context.add(*sub);
    sub->footer(
        "In the chat, /help lists the commands: /plan switches plans, /stats shows their costs.\n"
        "Examples:\n"
        "  pleat chat model.gguf\n"
        "  pleat chat model.gguf --repeat-layers \"26,34\" -c 8192 --system \"Be brief.\"\n"
        "  printf 'What is 2 + 2?\\n' | pleat chat model.gguf --temp 0 -q");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
