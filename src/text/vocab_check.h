#pragma once

#include "gguf/file.h"

namespace pleat {

/// Proves what libllama takes for granted of a vocabulary: each token once and without NUL bytes,
/// scores and types for every token. It ends the process, or reads beyond an array, where that does
/// not hold. Throws Error that names the file, the key and the token.
void check_vocabulary(const gguf::File& file);

}  // namespace pleat
