#pragma once

#include <memory>
#include <string_view>

#include "chat/call_reader.h"

namespace pleat {

/// {"name": text, "arguments": object} and then `close`. "parameters" is the same as "arguments",
/// which may be missing or be a text that holds the object; other keys are passed over.
std::unique_ptr<CallReader> make_json_call_reader(const ChatSyntax& syntax, std::string_view close);

}  // namespace pleat
