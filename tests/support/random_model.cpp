#include "support/random_model.h"

#include <cstddef>
#include <deque>
#include <functional>
#include <random>
#include <string_view>

#include "base/error.h"
#include "gguf/writer.h"
#include "support/random_metadata.h"
#include "support/random_settings.h"
#include "support/random_tensors.h"
#include "support/stock.h"

namespace pleat::test {
namespace {

/// FNV-1a.
uint32_t hash(std::string_view text) {
    uint32_t value = 2166136261U;
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
    return value;
}

/// The standard fixes mt19937's numbers; its distributions and the C library's logarithm differ
/// from system to system. A sum of four even 16-bit numbers is near enough to a normal one, and
/// exact.
std::vector<float> values(const RandomTensor& tensor, uint32_t seed) {
    std::mt19937 random(seed * 2654435761U ^ hash(tensor.name));
    std::vector<float> result(tensor.count());
    constexpr double sum_mean = 2 * 65535.0;
    constexpr double sum_deviation = 37837.227;  // sqrt(4 * (65536^2 - 1) / 12)
    for (float& value : result) {
        const uint32_t a = random();
        const uint32_t b = random();
        double unit = 0;
        if (tensor.even) {
            unit = static_cast<double>(a) / 2147483648.0 - 1.0;
        } else {
            const uint32_t sum = (a >> 16U) + (a & 0xFFFFU) + (b >> 16U) + (b & 0xFFFFU);
            unit = (static_cast<double>(sum) - sum_mean) / sum_deviation;
        }
        value = static_cast<float>(tensor.mean + tensor.deviation * unit);
    }
    return result;
}

ggml_type type_of(const RandomModel& model, const RandomTensor& tensor, ggml_type type) {
    if (!tensor.quantised) return GGML_TYPE_F32;
    for (const auto& [part, own_type] : model.types) {
        if (tensor.name.find(part) != std::string::npos) {
            type = own_type;
            break;
        }
    }
    return tensor.ne.front() % ggml_blck_size(type) == 0 ? type : GGML_TYPE_F16;
}

std::vector<std::byte> encode(const RandomTensor& tensor, ggml_type type,
                              const std::vector<float>& source) {
    const int64_t n_per_row = tensor.ne.front();
    const auto n_rows = static_cast<int64_t>(source.size()) / n_per_row;
    std::vector<std::byte> data(ggml_row_size(type, n_per_row) * static_cast<size_t>(n_rows));
    // Types that must know which columns matter are told that all do.
    const std::vector<float> importance(static_cast<size_t>(n_per_row), 1.0F);
    const size_t written =
        ggml_quantize_chunk(type, source.data(), data.data(), 0, n_rows, n_per_row,
                            ggml_quantize_requires_imatrix(type) ? importance.data() : nullptr);
    if (written != data.size()) {
        fail("{}: {} bytes of {} came out, expected {}", tensor.name, written, ggml_type_name(type),
             data.size());
    }
    return data;
}

void quantise(const std::string& from, const std::string& to, llama_ftype mix) {
    start_stock();
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = mix;
    params.nthread = 1;
    if (llama_model_quantize(from.c_str(), to.c_str(), &params) != 0) {
        fail("stock's quantiser fails for {}; its log:\n{}", llama_ftype_name(mix), stock_log());
    }
}

template <typename Type>
const TempFile& cached(const RandomModel& model, Type type,
                       const std::function<void(const std::string& path)>& make) {
    struct Entry {
        RandomModel model;
        Type type;
        TempFile file;
    };
    // Constructed before the files, so that it goes after them.
    process_temp_dir();
    static std::deque<Entry> entries;  // references to its elements stay good
    for (const Entry& entry : entries) {
        if (entry.type == type && entry.model == model) return entry.file;
    }
    TempFile file(".gguf");
    make(file.path());
    return entries.emplace_back(Entry{model, type, std::move(file)}).file;
}

}  // namespace

void write_model(const std::string& path, const RandomModel& model, ggml_type type) {
    check(model);
    std::vector<gguf::TensorToWrite> out;
    for (const RandomTensor& tensor : list_tensors(model)) {
        const ggml_type stored = type_of(model, tensor, type);
        out.push_back({.name = tensor.name,
                       .type = stored,
                       .ne = tensor.ne,
                       .write = [=, seed = model.seed](const auto& sink) {
                           sink(encode(tensor, stored, values(tensor, seed)));
                       }});
    }
    gguf::write(path, list_metadata(model), out);
}

const TempFile& make_model(const RandomModel& model, ggml_type type) {
    return cached(model, type, [&](const std::string& path) { write_model(path, model, type); });
}

const TempFile& make_model(const RandomModel& model, llama_ftype mix) {
    return cached(model, mix, [&](const std::string& path) {
        quantise(make_model(model, GGML_TYPE_F32).path(), path, mix);
    });
}

}  // namespace pleat::test
