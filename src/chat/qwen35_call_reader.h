#pragma once

#include <memory>

#include "chat/call_reader.h"

namespace pleat {

/// <function=name> <parameter=key> value </parameter> ... </function> </tool_call>. One line break
/// next to each end of a value belongs to the form. A value is a text where text_parameters say so,
/// else JSON where it is valid JSON, else a text. With `in_function` the text <function= has
/// already been read, and no </tool_call> need follow.
std::unique_ptr<CallReader> make_qwen35_call_reader(const ChatSyntax& syntax, bool in_function);

}  // namespace pleat
