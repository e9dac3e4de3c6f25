#pragma once

#include <memory>

#include "chat/call_reader.h"

namespace pleat {

/// call:name{key:value,...}<tool_call|>. Texts and keys stand between <|"|> marks, as JSON strings,
/// or (keys) bare; objects and arrays nest; numbers, true, false and null (None, True and False,
/// too) are bare.
std::unique_ptr<CallReader> make_gemma4_call_reader(const ChatSyntax& syntax);

}  // namespace pleat
