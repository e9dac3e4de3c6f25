#include "lab/fingerprint.h"

#include <fmt/format.h>
#include <ggml.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/sha256.h"

namespace pleat {
namespace {

constexpr size_t max_samples = 64;
constexpr size_t sample_bytes = 256;

/// Adds values so that no two lists of values give the same bytes: a text with its length first,
/// numbers as they lie in a GGUF file.
class Digest {
  public:
    void add(std::string_view text) {
        add_number(uint64_t{text.size()});
        hash_.add(text);
    }

    template <typename Number>
    void add_number(Number number) {
        hash_.add(std::as_bytes(std::span(&number, 1)));
    }

    void add_bytes(std::span<const std::byte> bytes) { hash_.add(bytes); }

    void add_value(const gguf::Value& value) {
        add_number(static_cast<uint32_t>(gguf::type_of(value)));
        std::visit([&](const auto& it) { add_alternative(it); }, value);
    }

    std::string hex() { return hash_.hex(); }

  private:
    template <typename T>
    void add_alternative(const T& it) {
        if constexpr (std::is_same_v<T, std::string>) {
            add(it);
        } else if constexpr (std::is_same_v<T, gguf::Array>) {
            add_number(static_cast<uint32_t>(it.type));
            add_number(it.size());
            std::visit([&](const auto& items) { add_items(items); }, it.items);
        } else {
            add_number(it);
        }
    }

    template <typename T>
    void add_items(const std::vector<T>& items) {
        if constexpr (std::is_same_v<T, std::string>) {
            for (const std::string& item : items) add(item);
        } else {
            hash_.add(std::as_bytes(std::span(items)));
        }
    }

    Sha256 hash_;
};

std::string tokenizer_hash(const gguf::File& file) {
    constexpr std::array keys{"tokenizer.ggml.model",      "tokenizer.ggml.pre",
                              "tokenizer.ggml.tokens",     "tokenizer.ggml.scores",
                              "tokenizer.ggml.token_type", "tokenizer.ggml.merges"};
    if (file.find(keys.front()) == nullptr) return {};
    Digest digest;
    for (const char* const key : keys) {
        const gguf::Value* const value = file.find(key);
        if (value == nullptr) continue;
        digest.add(key);
        digest.add_value(*value);
    }
    return digest.hex();
}

std::vector<const gguf::TensorInfo*> by_name(const gguf::File& file) {
    std::vector<const gguf::TensorInfo*> tensors;
    for (const gguf::TensorInfo& tensor : file.tensors()) tensors.push_back(&tensor);
    std::ranges::sort(tensors, {}, [](const gguf::TensorInfo* it) { return it->name; });
    return tensors;
}

std::string tensor_types(const gguf::File& file) {
    std::map<std::string, size_t> counts;
    for (const gguf::TensorInfo& tensor : file.tensors()) ++counts[ggml_type_name(tensor.type)];
    std::string text;
    for (const auto& [type, n] : counts) {
        text += fmt::format("{}{}:{}", text.empty() ? "" : " ", type, n);
    }
    return text;
}

std::string tensor_types_hash(const gguf::File& file) {
    Digest digest;
    for (const gguf::TensorInfo* const tensor : by_name(file)) {
        digest.add(tensor->name);
        digest.add(ggml_type_name(tensor->type));
        for (const int64_t n : tensor->ne) digest.add_number(n);
    }
    return digest.hex();
}

std::string content_hash(const gguf::File& file, const std::string& architecture) {
    Digest digest;
    std::vector<const gguf::KeyValue*> keys;
    for (const gguf::KeyValue& entry : file.metadata()) {
        if (entry.key.starts_with(architecture + ".")) keys.push_back(&entry);
    }
    std::ranges::sort(keys, {}, [](const gguf::KeyValue* it) { return it->key; });
    for (const gguf::KeyValue* const entry : keys) {
        digest.add(entry->key);
        digest.add_value(entry->value);
    }
    const std::vector<const gguf::TensorInfo*> tensors = by_name(file);
    const size_t n_samples = std::min(max_samples, tensors.size());
    for (size_t i = 0; i < n_samples; ++i) {
        const gguf::TensorInfo& tensor = *tensors[i * tensors.size() / n_samples];
        const std::span<const std::byte> data = file.data(tensor);
        const size_t n = std::min(sample_bytes, data.size());
        digest.add(tensor.name);
        digest.add_bytes(data.subspan((data.size() - n) / 2, n));
    }
    return digest.hex();
}

std::string file_type(const gguf::File& file) {
    const std::optional<uint32_t> type = file.u32("general.file_type");
    if (!type) return {};
    const char* const name = llama_ftype_name(static_cast<llama_ftype>(*type));
    return name == nullptr ? std::string() : name;
}

}  // namespace

Fingerprint fingerprint_of(const gguf::File& file, const ModelShape& shape) {
    Fingerprint made = shape_fingerprint(shape);
    made.tokenizer_sha256 = tokenizer_hash(file);
    made.tensor_types = tensor_types(file);
    made.tensor_types_sha256 = tensor_types_hash(file);
    made.content_sha256 = content_hash(file, shape.architecture);
    made.file_type = file_type(file);
    return made;
}

}  // namespace pleat
