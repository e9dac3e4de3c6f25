#pragma once

#include <span>
#include <vector>

namespace pleat {

/// The mean of rows of equal width, at least one: as stock pools a text's embeddings, by the
/// backend's product with a vector of 1/n, whose order of adding decides bits. Throws Error when
/// memory runs out.
std::vector<float> mean_row(std::span<const std::vector<float>> rows);

}  // namespace pleat
