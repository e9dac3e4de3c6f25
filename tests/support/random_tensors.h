#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/random_model.h"

namespace pleat::test {

/// A tensor and how its numbers are drawn.
struct RandomTensor {
    std::string name;
    std::vector<int64_t> ne;  ///< fastest first
    float mean = 0;
    float deviation = 1;
    bool quantised = false;
    /// Factors below or about 0 would not be those of a model, so these are drawn evenly between
    /// mean - deviation and mean + deviation.
    bool even = false;

    size_t count() const;
};

/// The tensors of the model's file, in the file's order.
std::vector<RandomTensor> list_tensors(const RandomModel& model);

}  // namespace pleat::test
