#pragma once

#include "model/architecture.h"

/// The rows of the table in registry.cpp, each defined in its architecture's file.
namespace pleat {

const Architecture& llama_architecture();
const Architecture& qwen2_architecture();
const Architecture& qwen3_architecture();
const Architecture& qwen3moe_architecture();
const Architecture& gemma3_architecture();
const Architecture& qwen35_architecture();
const Architecture& qwen35moe_architecture();
const Architecture& gemma4_architecture();

}  // namespace pleat
