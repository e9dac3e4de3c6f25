#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "chat/chat_format.h"
#include "cli/chat_input.h"
#include "cli/chat_settings.h"
#include "cli/line_reader.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/standard_output.h"
#include "generate/chat_session.h"
#include "text/tokenizer.h"

namespace pleat::cli {

/// What the answers of a chat took, added up.
struct ChatTotals {
    size_t n_answers = 0;
    size_t n_prompt = 0;  ///< tokens that were run
    size_t n_decoded = 0;
    double prompt_ms = 0.0;
    double generation_ms = 0.0;
};

/// Reads what a person enters, line by line, and does it. What goes wrong is one line on stderr,
/// and the chat goes on.
class ChatLoop {
  public:
    ChatLoop(Loaded loaded, const PlanOptions& plan, bool quiet, const Tokenizer& tokenizer,
             const ChatFormat& format, ChatSettings settings, const std::string& system);

    /// Until the end of the input. Returns the exit status: from a pipe 1 when something failed.
    int run();

  private:
    struct Command {
        std::string_view name;
        std::string_view argument;
        std::string_view help;
        void (ChatLoop::*run)(const std::string& argument);
    };
    static std::span<const Command> commands();  // chat_commands.cpp, as what they do

    void handle(const ChatInput& input);
    void command(const std::string& text);
    /// False when the conversation is as before.
    bool ask(const std::string& text);
    void show_end(const ChatReply& reply);
    void note(const std::string& text);
    void print_error(const std::string& text);

    void plan(const std::string& spec);
    void stats(const std::string&);
    void set(const std::string& text);
    void system(const std::string& text);
    void clear(const std::string&);
    void undo(const std::string&);
    void retry(const std::string&);
    void save(const std::string& path);
    void save_over(const std::string& path);
    void load(const std::string& path);
    void help(const std::string&);
    void exit(const std::string&) { ended_ = true; }
    void use_plan(LayerPlan plan);

    std::shared_ptr<Model> model_;
    ContextSettings context_settings_;
    const PlanOptions& plan_options_;
    const bool quiet_;
    const Tokenizer& tokenizer_;
    ChatSession session_;
    ChatSettings settings_;
    LineReader reader_;
    StandardOutput output_;
    ChatReply last_;
    ChatTotals totals_;
    bool failed_ = false;
    bool ended_ = false;
};

}  // namespace pleat::cli
