#pragma once

#include <string_view>

#include "chat/chat_parser.h"
#include "cli/standard_output.h"

namespace pleat::cli {

/// Shows an answer while it comes: on a terminal with its reasoning dimmed and without control
/// characters, which could change the terminal; else as the model wrote it.
class ReplyPrinter {
  public:
    ReplyPrinter(StandardOutput& output, bool terminal) : output_(output), terminal_(terminal) {}

    void text(std::string_view raw);
    void delta(const ChatDelta& delta);
    void end();

  private:
    void show(std::string_view text);
    void undim();

    StandardOutput& output_;
    const bool terminal_;
    bool dimmed_ = false;
};

}  // namespace pleat::cli
