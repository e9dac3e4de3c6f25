#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "arch/common_keys.h"
#include "arch/rows.h"
#include "base/error.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/spec.h"
#include "support/temp_dir.h"

namespace pleat {

/// A llama whose weights only have to be told apart: every element of a tensor is one of 1, 2, ...
struct TinyLlama {
    int n_block = 4;
    ggml_type output_type = GGML_TYPE_F32;  ///< of attn_output and ffn_down
    ggml_type query_type = GGML_TYPE_F32;   ///< of attn_q or attn_qkv
    bool biases = false;
    bool fused_qkv = false;
    int n_expert = 0;
    /// Keys to add, or to have another value.
    std::vector<gguf::KeyValue> keys{};
    std::vector<gguf::TensorToWrite> more_tensors{};

    std::vector<gguf::KeyValue> metadata() const {
        std::vector<gguf::KeyValue> all{
            {"general.architecture", std::string("llama")},
            {"general.name", std::string("tiny")},
            {"llama.context_length", 128U},
            {"llama.embedding_length", 32U},
            {"llama.block_count", static_cast<uint32_t>(n_block)},
            {"llama.feed_forward_length", 64U},
            {"llama.attention.head_count", 2U},
            {"llama.attention.head_count_kv", 1U},
            {"llama.attention.layer_norm_rms_epsilon", 1e-5F},
        };
        if (n_expert > 0) {
            all.push_back({"llama.expert_count", static_cast<uint32_t>(n_expert)});
            all.push_back({"llama.expert_used_count", 1U});
        }
        for (const gguf::KeyValue& entry : keys) {
            const auto old =
                std::ranges::find(all, entry.key, [](const gguf::KeyValue& kv) { return kv.key; });
            if (old == all.end()) {
                all.push_back(entry);
            } else {
                old->value = entry.value;
            }
        }
        return all;
    }

    std::vector<gguf::TensorToWrite> tensors() const {
        std::vector<gguf::TensorToWrite> all;
        const auto add = [&](const std::string& name, ggml_type type, std::vector<int64_t> ne) {
            all.push_back(tensor(name, type, std::move(ne), all.size()));
        };
        const auto linear = [&](const std::string& name, ggml_type type, int64_t in, int64_t out) {
            add(name + ".weight", type, {in, out});
            if (biases) add(name + ".bias", GGML_TYPE_F32, {out});
        };
        add("token_embd.weight", GGML_TYPE_F32, {32, 8});
        for (int i = 0; i < n_block; ++i) {
            const std::string blk = fmt::format("blk.{}.", i);
            add(blk + "attn_norm.weight", GGML_TYPE_F32, {32});
            if (fused_qkv) {
                linear(blk + "attn_qkv", query_type, 32, 64);
            } else {
                linear(blk + "attn_q", query_type, 32, 32);
                linear(blk + "attn_k", GGML_TYPE_F32, 32, 16);
                linear(blk + "attn_v", GGML_TYPE_F32, 32, 16);
            }
            linear(blk + "attn_output", output_type, 32, 32);
            add(blk + "ffn_norm.weight", GGML_TYPE_F32, {32});
            if (n_expert == 0) {
                linear(blk + "ffn_gate", GGML_TYPE_F32, 32, 64);
                linear(blk + "ffn_up", GGML_TYPE_F32, 32, 64);
                linear(blk + "ffn_down", output_type, 64, 32);
            } else {
                add(blk + "ffn_gate_inp.weight", GGML_TYPE_F32, {32, n_expert});
                add(blk + "ffn_gate_exps.weight", GGML_TYPE_F32, {32, 64, n_expert});
                add(blk + "ffn_up_exps.weight", GGML_TYPE_F32, {32, 64, n_expert});
                add(blk + "ffn_down_exps.weight", output_type, {64, 32, n_expert});
            }
        }
        add("output_norm.weight", GGML_TYPE_F32, {32});
        all.insert(all.end(), more_tensors.begin(), more_tensors.end());
        return all;
    }

    static gguf::TensorToWrite tensor(const std::string& name, ggml_type type,
                                      std::vector<int64_t> ne, size_t seed = 0) {
        const int64_t n = std::accumulate(ne.begin(), ne.end(), int64_t{1}, std::multiplies<>());
        const auto write = [=, n_per_row = ne.front()](const auto& sink) {
            std::vector<float> values(static_cast<size_t>(n));
            for (size_t i = 0; i < values.size(); ++i) {
                values[i] = static_cast<float>(1 + (i + seed) % 64);
            }
            std::vector<std::byte> data(ggml_row_size(type, n_per_row) *
                                        static_cast<size_t>(n / n_per_row));
            ggml_quantize_chunk(type, values.data(), data.data(), 0, n / n_per_row, n_per_row,
                                nullptr);
            sink(data);
        };
        return {name, type, std::move(ne), write};
    }

    void save(const std::string& path) const { gguf::write(path, metadata(), tensors()); }
};

inline std::shared_ptr<Model> open_tiny(const std::string& path,
                                        const Architecture& row = llama_architecture()) {
    return std::make_shared<Model>(gguf::File::open(path), row);
}

/// The llama row, for files that end in blocks for drafts, as those of other architectures may.
inline const Architecture& llama_with_drafts() {
    static const Architecture row = [] {
        Architecture a = llama_architecture();
        a.hparams = [](const gguf::File& file) {
            return read_common_keys(Keys(file, "llama"), Mtp::allowed);
        };
        return a;
    }();
    return row;
}

inline LayerPlan plan_of(const Model& model, const std::string& spec) {
    return LayerPlan::resolve(parse_spec(spec), model.shape());
}

inline std::string data_of(const gguf::File& file, const std::string& name) {
    const gguf::TensorInfo* const info = file.find_tensor(name);
    if (info == nullptr) return "no tensor " + name;
    const auto bytes = file.data(*info);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::vector<float> floats_of(const gguf::File& file, const std::string& name) {
    const std::string data = data_of(file, name);
    std::vector<float> values(data.size() / sizeof(float));
    std::memcpy(values.data(), data.data(), values.size() * sizeof(float));
    return values;
}

template <typename F>
std::string message_of(F&& action) {
    try {
        action();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

}  // namespace pleat
