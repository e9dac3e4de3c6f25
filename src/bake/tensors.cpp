#include "bake/tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "bake/fold.h"
#include "base/error.h"

namespace pleat {
namespace {

constexpr size_t piece_bytes = 1U << 20U;  ///< whole elements of any type that can be folded

struct LayerName {
    int32_t layer = 0;
    std::string_view rest;  ///< "attn_q.weight"
};

/// The parts of "blk.12.attn_q.weight"; no value for a tensor of no layer.
std::optional<LayerName> layer_name(std::string_view name) {
    constexpr std::string_view prefix = "blk.";
    if (!name.starts_with(prefix)) return std::nullopt;
    LayerName result;
    const char* const end = name.data() + name.size();
    const auto [next, error] = std::from_chars(name.data() + prefix.size(), end, result.layer);
    if (error != std::errc{} || result.layer < 0 || next == end || *next != '.') {
        return std::nullopt;
    }
    result.rest = {next + 1, static_cast<size_t>(end - next - 1)};
    return result;
}

/// The bytes of a tensor that make the query, from its beginning; 0 when it has no part in it.
uint64_t query_bytes(std::string_view rest, const gguf::TensorInfo& info, const LayerShape& shape,
                     bool has_query_norm) {
    if (has_query_norm) return rest == "attn_q_norm.weight" ? info.bytes : 0;
    if (rest == "attn_q.weight" || rest == "attn_q.bias") return info.bytes;
    // The query's rows come first.
    const uint64_t n_query = uint64_t{shape.n_head} * shape.head_dim_k;
    if (rest == "attn_qkv.weight") {
        return n_query * ggml_row_size(info.type, info.ne[0]);
    }
    return rest == "attn_qkv.bias" ? n_query * ggml_type_size(info.type) : 0;
}

class PassTensors {
  public:
    explicit PassTensors(const Model& model) : model_(model), of_layer_(model.hparams().n_layer) {
        for (const gguf::TensorInfo& info : model.file().tensors()) {
            const auto name = layer_name(info.name);
            if (name && static_cast<size_t>(name->layer) < of_layer_.size()) {
                of_layer_[static_cast<size_t>(name->layer)].push_back(&info);
            }
        }
    }

    void add(size_t index, const Pass& pass, const PassForm& form,
             std::vector<BakedTensor>& out) const {
        std::unordered_map<const gguf::TensorInfo*, const NamedTensor*> named;
        for (const NamedTensor& tensor : model_.layer_tensors(pass.layer)) {
            named.emplace(tensor.info, &tensor);
        }
        for (const gguf::TensorInfo* info : of_layer_[static_cast<size_t>(pass.layer)]) {
            const auto found = named.find(info);
            const NamedTensor* const use = found == named.end() ? nullptr : found->second;
            const bool attention = use != nullptr && use->part == Part::attention;
            const bool ffn = use != nullptr && use->part == Part::ffn;
            const std::string_view rest = layer_name(info->name)->rest;
            // What nobody asked for goes with its sub-layer too (scales of inputs).
            if (form.without_attention && (attention || rest.starts_with("attn_"))) continue;
            if (form.without_ffn && (ffn || rest.starts_with("ffn_"))) continue;

            BakedTensor tensor{.source = info, .name = fmt::format("blk.{}.{}", index, rest)};
            const auto change = [&](float factor, uint64_t bytes, std::string_view mark) {
                tensor.factor = factor;
                tensor.changed_bytes = bytes;
                tensor.reason = fmt::format("[{}] of pass {} (layer {})", mark, index, pass.layer);
                check(tensor);
            };
            const bool dropped = (attention && !pass.attention) || (ffn && !pass.ffn);
            if (dropped && use->ends_sub_layer) {
                change(0.0F, info->bytes, attention ? "-attn" : "-ffn");
            } else if (!dropped && use != nullptr && use->takes_scale && pass.scale != 1.0F) {
                change(pass.scale, info->bytes, fmt::format("scale={}", pass.scale));
            } else if (attention && pass.qk_scale != 1.0F) {
                const uint64_t bytes =
                    query_bytes(rest, *info, model_.shape().layers[static_cast<size_t>(pass.layer)],
                                has_query_norm(pass.layer));
                if (bytes > 0) change(pass.qk_scale, bytes, fmt::format("qk={}", pass.qk_scale));
            }
            out.push_back(std::move(tensor));
        }
    }

  private:
    bool has_query_norm(int32_t layer) const {
        return model_.file().find_tensor(fmt::format("blk.{}.attn_q_norm.weight", layer)) !=
               nullptr;
    }

    void check(const BakedTensor& tensor) const {
        const ggml_type type = tensor.source->type;
        if (tensor.factor == 0.0F ? zero_bytes_are_zeros(type) : can_fold(type)) return;
        if (tensor.factor == 0.0F) {
            fail("{}: tensor {} has type {}, which cannot hold zeros: {} cannot be baked",
                 model_.file().path(), tensor.source->name, ggml_type_name(type), tensor.reason);
        }
        fail(
            "{}: tensor {} has type {}: {} cannot be baked; a factor other than 0 goes into f32, "
            "f16 and bf16 only, since quantised weights are never quantised again",
            model_.file().path(), tensor.source->name, ggml_type_name(type), tensor.reason);
    }

    const Model& model_;
    std::vector<std::vector<const gguf::TensorInfo*>> of_layer_;
};

BakedTensor global_tensor(const Model& model, const LayerPlan& plan, const gguf::TensorInfo& info) {
    BakedTensor tensor{.source = &info, .name = info.name};
    const auto& list = model.global_tensors();
    const auto named = std::ranges::find_if(
        list, [&](const NamedTensor& t) { return t.info == &info && t.layer_axis >= 0; });
    if (named == list.end()) return tensor;
    tensor.layer_axis = named->layer_axis;
    tensor.n_slice = model.hparams().n_layer;
    for (const Pass& pass : plan) tensor.slices.push_back(pass.layer);
    const int64_t width = info.ne[0] / tensor.n_slice;
    if (tensor.layer_axis == 0 && width % ggml_blck_size(info.type) != 0) {
        fail(
            "{}: tensor {} of type {} has {} values a layer, which are not whole blocks: a layer's "
            "slice cannot be cut out, so no plan of this file can be baked",
            model.file().path(), info.name, ggml_type_name(info.type), width);
    }
    return tensor;
}

/// Along the rows every row is cut; else a layer has rows of its own.
void write_slices(const BakedTensor& tensor, std::span<const std::byte> data,
                  const std::function<void(std::span<const std::byte>)>& sink) {
    const gguf::TensorInfo& info = *tensor.source;
    const size_t row = ggml_row_size(info.type, info.ne[0]);
    const auto n_slice = static_cast<size_t>(tensor.n_slice);
    const size_t run = tensor.layer_axis == 0 ? row : data.size();
    std::vector<std::byte> picked;
    for (size_t at = 0; at < data.size(); at += run) {
        picked.clear();
        for (const int32_t layer : tensor.slices) {
            const auto slice =
                data.subspan(at + static_cast<size_t>(layer) * (run / n_slice), run / n_slice);
            if (tensor.layer_axis == 0) {
                picked.insert(picked.end(), slice.begin(), slice.end());
            } else {
                sink(slice);
            }
        }
        if (!picked.empty()) sink(picked);
    }
}

void write_zeros(uint64_t bytes, const std::function<void(std::span<const std::byte>)>& sink) {
    const std::vector<std::byte> zeros(std::min<uint64_t>(bytes, piece_bytes));
    while (bytes > 0) {
        const uint64_t n = std::min<uint64_t>(bytes, zeros.size());
        sink(std::span(zeros).first(n));
        bytes -= n;
    }
}

}  // namespace

std::vector<int64_t> BakedTensor::ne() const {
    std::vector<int64_t> result(source->ne.begin(), source->ne.begin() + source->n_dims);
    if (layer_axis >= 0) {
        int64_t& n = result[static_cast<size_t>(layer_axis)];
        n = n / n_slice * static_cast<int64_t>(slices.size());
    }
    return result;
}

std::vector<BakedTensor> baked_tensors(const Model& model, const LayerPlan& plan,
                                       const std::vector<PassForm>& forms) {
    const PassTensors passes(model);
    std::vector<BakedTensor> out;
    bool passes_done = false;
    const auto add_passes = [&] {
        if (passes_done) return;
        passes_done = true;
        for (size_t i = 0; i < plan.size(); ++i) passes.add(i, plan[i], forms[i], out);
    };
    for (const gguf::TensorInfo& info : model.file().tensors()) {
        if (layer_name(info.name)) {
            add_passes();
        } else {
            out.push_back(global_tensor(model, plan, info));
        }
    }
    add_passes();
    return out;
}

void write_tensor(const gguf::File& file, const BakedTensor& tensor,
                  const std::function<void(std::span<const std::byte>)>& sink,
                  std::vector<std::string>& warnings) {
    const gguf::TensorInfo& info = *tensor.source;
    const std::span<const std::byte> data = file.data(info);
    if (tensor.layer_axis >= 0) {
        write_slices(tensor, data, sink);
        file.parts().at(info.part).release(info.offset, info.bytes);
        return;
    }
    const uint64_t changed = tensor.factor == 1.0F ? 0 : tensor.changed_bytes;
    if (tensor.factor == 0.0F) {
        write_zeros(changed, sink);
    } else if (changed > 0) {
        std::vector<std::byte> buffer(std::min<uint64_t>(changed, piece_bytes));
        uint64_t rounded = 0;
        for (uint64_t at = 0; at < changed; at += buffer.size()) {
            buffer.resize(std::min<uint64_t>(changed - at, piece_bytes));
            const FoldResult result =
                fold(info.type, tensor.factor, data.subspan(at, buffer.size()), buffer);
            if (result.overflow >= 0) {
                fail("{}: tensor {}, element {}: {} makes it infinite in {}", file.path(),
                     info.name,
                     at / ggml_type_size(info.type) + static_cast<uint64_t>(result.overflow),
                     tensor.reason, ggml_type_name(info.type));
            }
            rounded += result.rounded;
            sink(buffer);
        }
        if (rounded > 0) {
            warnings.push_back(fmt::format(
                "tensor {}: {} of {} values of {} were rounded by {}", tensor.name, rounded,
                changed / ggml_type_size(info.type), ggml_type_name(info.type), tensor.reason));
        }
    }
    if (changed < data.size()) sink(data.subspan(changed));
    // Only a hint, so that a model larger than memory does not push everything else out of it.
    file.parts().at(info.part).release(info.offset, info.bytes);
}

}  // namespace pleat
