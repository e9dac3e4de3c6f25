#pragma once

#include <ggml.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"

namespace pleat::test {

/// A model file in pieces that a test can spoil.
struct ModelParts {
    std::vector<gguf::KeyValue> metadata;
    struct Tensor {
        std::string name;
        ggml_type type;
        std::vector<int64_t> ne;
        std::vector<std::byte> data;
    };
    std::vector<Tensor> tensors;

    gguf::Value& key(const std::string& name) {
        const auto at = std::ranges::find(metadata, name, &gguf::KeyValue::key);
        if (at != metadata.end()) return at->value;
        metadata.push_back({name, uint32_t{0}});
        return metadata.back().value;
    }
    void remove_key(const std::string& name) {
        std::erase_if(metadata, [&](const gguf::KeyValue& kv) { return kv.key == name; });
    }
    Tensor& tensor(const std::string& name) {
        const auto at = std::ranges::find(tensors, name, &Tensor::name);
        if (at == tensors.end()) throw std::logic_error(name);
        return *at;
    }
    void remove_tensor(const std::string& name) {
        std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
    }
    void reshape(const std::string& name, std::vector<int64_t> ne, ggml_type type = GGML_TYPE_F32) {
        Tensor& t = tensor(name);
        t.ne = std::move(ne);
        t.type = type;
        int64_t rows = 1;
        for (size_t i = 1; i < t.ne.size(); ++i) rows *= t.ne[i];
        t.data.assign(ggml_row_size(type, t.ne[0]) * static_cast<size_t>(rows), std::byte{0});
    }
};

inline ModelParts read_parts(const std::string& path) {
    const gguf::File file = gguf::File::open(path);
    ModelParts parts{.metadata = file.metadata(), .tensors = {}};
    for (const gguf::TensorInfo& info : file.tensors()) {
        const auto data = file.data(info);
        parts.tensors.push_back({.name = info.name,
                                 .type = info.type,
                                 .ne = {info.ne.begin(), info.ne.begin() + info.n_dims},
                                 .data = {data.begin(), data.end()}});
    }
    return parts;
}

inline void write_parts(const ModelParts& parts, const std::string& path) {
    std::vector<gguf::TensorToWrite> tensors;
    for (const ModelParts::Tensor& t : parts.tensors) {
        tensors.push_back(
            {.name = t.name, .type = t.type, .ne = t.ne, .write = [&t](const auto& sink) {
                 sink(t.data);
             }});
    }
    gguf::write(path, parts.metadata, tensors);
}

}  // namespace pleat::test
