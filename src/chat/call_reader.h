#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "chat/chat_parser.h"

namespace pleat {

/// Reads one tool call byte by byte, from behind the mark that opened it.
class CallReader {
  public:
    enum class Status : uint8_t {
        more,
        done,  ///< this byte was its last
        bad,   ///< no call: this byte cannot follow
    };

    virtual ~CallReader() = default;
    virtual Status feed(char c) = 0;
    /// At the end of the text: whether what was read is a whole call all the same.
    virtual bool whole() const = 0;

    /// Empty until it is known.
    const std::string& name() const { return name_; }
    /// What was learned of the arguments since the last call, once the name is known.
    std::string take_arguments();

  protected:
    explicit CallReader(const ChatSyntax& syntax) : syntax_(syntax) {}

    /// False when there is no such tool.
    bool set_name(std::string name);

    const ChatSyntax& syntax_;
    std::string name_;
    std::string arguments_;
};

/// The texts that open a call.
std::vector<std::string> call_marks(ToolForm form);

/// `syntax` must outlive it. `mark` is the one of call_marks() that was read; empty for a call that
/// needs none (llama3).
std::unique_ptr<CallReader> make_call_reader(const ChatSyntax& syntax, std::string_view mark);

}  // namespace pleat
