#include "cli/reply_printer.h"

#include <algorithm>
#include <string>

namespace pleat::cli {
namespace {

bool is_control(char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
}

}  // namespace

void ReplyPrinter::text(std::string_view raw) {
    if (!terminal_) output_.write(raw);
}

void ReplyPrinter::delta(const ChatDelta& delta) {
    if (!terminal_) return;
    if (!delta.reasoning.empty()) {
        if (!dimmed_) output_.write("\x1b[2m");
        dimmed_ = true;
        show(delta.reasoning);
    }
    if (!delta.content.empty()) {
        if (dimmed_) {
            undim();
            output_.write("\n");
        }
        show(delta.content);
    }
}

void ReplyPrinter::end() {
    undim();
    output_.write("\n");
}

void ReplyPrinter::show(std::string_view text) {
    std::string shown(text);
    std::erase_if(shown, is_control);
    output_.write(shown);
}

void ReplyPrinter::undim() {
    if (dimmed_) output_.write("\x1b[0m");
    dimmed_ = false;
}

}  // namespace pleat::cli
