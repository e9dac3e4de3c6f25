#pragma once

#include "model/architecture.h"

namespace pleat {

/// Llama 1 to 3, Mistral, Mixtral's experts. Facts: docs/design/architectures/llama.md
const Architecture& llama_architecture();

}  // namespace pleat
