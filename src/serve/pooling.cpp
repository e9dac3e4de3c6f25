#include "serve/pooling.h"

#include <fmt/format.h>
#include <cmath>

#include "base/error.h"
#include "engine/mean_row.h"

namespace pleat {

std::string_view pooling_name(Pooling pooling) {
    switch (pooling) {
        case Pooling::none:
            return "none";
        case Pooling::mean:
            return "mean";
        case Pooling::cls:
            return "cls";
        case Pooling::last:
            return "last";
    }
    fail("unknown pooling {}", static_cast<int>(pooling));
}

Pooling file_pooling(const gguf::File& file) {
    const std::string key = file.required_string("general.architecture") + ".pooling_type";
    const auto type = file.u32(key);
    if (!type) return Pooling::last;
    switch (*type) {
        case 0:
            return Pooling::none;
        case 1:
            return Pooling::mean;
        case 2:
            return Pooling::cls;
        case 3:
            return Pooling::last;
        case 4:
            fail(
                "{}: {} is 4 (rank): reranking is not supported; for embeddings choose another "
                "one with --pooling",
                file.path(), key);
        default:
            fail("{}: {} is {}, expected 0 (none), 1 (mean), 2 (cls) or 3 (last)", file.path(), key,
                 *type);
    }
}

std::vector<std::vector<float>> pooled(std::vector<std::vector<float>> rows, Pooling pooling) {
    switch (pooling) {
        case Pooling::none:
            break;
        case Pooling::mean:
            return {mean_row(rows)};
        case Pooling::cls:
            rows.resize(1);
            break;
        case Pooling::last:
            rows.erase(rows.begin(), rows.end() - 1);
            break;
    }
    return rows;
}

std::vector<float> normalised(std::span<const float> embedding) {
    double sum = 0.0;
    for (const float x : embedding) sum += x * x;
    const auto factor = static_cast<float>(sum > 0.0 ? 1.0 / std::sqrt(sum) : 0.0);
    std::vector<float> result(embedding.begin(), embedding.end());
    for (float& x : result) x *= factor;
    return result;
}

}  // namespace pleat
