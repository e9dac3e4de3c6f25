#pragma once

#include <cstddef>
#include <functional>

namespace pleat {

/// Runs `work` to its end on a thread with a stack of at least `bytes`, and passes on what it
/// throws. For parsers and regular expressions that recurse once per character of their input: the
/// caller bounds the input, this gives it the room. Memory is only used as far as it is touched.
/// Throws Error when the system gives no such thread.
void on_deep_stack(size_t bytes, const std::function<void()>& work);

}  // namespace pleat
