#pragma once

#include <vector>

#include "gguf/value.h"
#include "support/random_model.h"

namespace pleat::test {

/// The keys of the model's file, in the file's order.
std::vector<gguf::KeyValue> list_metadata(const RandomModel& model);

}  // namespace pleat::test
