#include "model/model.h"

#include <algorithm>
#include <cstdio>
#include <unordered_set>
#include <utility>

#include "base/error.h"

namespace pleat {
namespace {

ModelShape make_shape(const gguf::File& file, const Architecture& architecture,
                      const Hparams& hparams) {
    ModelShape shape;
    shape.architecture = architecture.name;
    shape.name = file.string("general.name").value_or("");
    shape.n_layer = static_cast<int32_t>(hparams.n_layer);
    shape.n_layer_nextn = static_cast<int32_t>(hparams.n_layer_nextn);
    shape.n_embd = hparams.n_embd;
    shape.n_vocab = hparams.n_vocab;
    shape.n_ctx_train = hparams.n_ctx_train;
    shape.n_swa = hparams.n_swa;
    for (const LayerHparams& from : hparams.layers) {
        LayerShape& layer = shape.layers.emplace_back();
        layer.role = from.role;
        layer.kv_owner = from.kv_owner;
        layer.n_head = from.n_head;
        layer.n_head_kv = from.n_head_kv;
        layer.head_dim_k = from.head_dim_k;
        layer.head_dim_v = from.head_dim_v;
        if (from.role != Role::recurrent) continue;
        layer.n_conv_state = static_cast<uint64_t>(hparams.delta_net->n_conv_state());
        layer.n_delta_state = static_cast<uint64_t>(hparams.delta_net->n_delta_state());
    }
    return shape;
}

}  // namespace

WeightCost weight_cost(const std::vector<NamedTensor>& tensors, Part part, const Hparams& hparams) {
    WeightCost cost;
    for (const NamedTensor& tensor : tensors) {
        if (tensor.part != part) continue;
        const gguf::TensorInfo& info = *tensor.info;
        const uint64_t elements =
            static_cast<uint64_t>(info.ne[0] * info.ne[1] * info.ne[2] * info.ne[3]);
        if (!tensor.shared_bytes) cost.resident_bytes += info.bytes;
        switch (tensor.use) {
            case Use::get_rows:
                cost.read_bytes += info.bytes / static_cast<uint64_t>(info.ne[1]);
                break;
            case Use::mul_mat:
                cost.read_bytes += info.bytes;
                cost.flops += 2 * elements;
                break;
            case Use::mul_mat_id: {
                const uint64_t n_expert = hparams.n_expert;
                cost.read_bytes += info.bytes / n_expert * hparams.n_expert_used;
                cost.flops += 2 * elements / n_expert * hparams.n_expert_used;
                break;
            }
            case Use::mul:
            case Use::add:
            case Use::rope_factors:
            case Use::conv:
                cost.read_bytes += info.bytes;
                break;
        }
    }
    return cost;
}

Model::Model(gguf::File file, const Architecture& architecture, ModelOptions options)
    : file_(std::move(file)),
      architecture_(architecture),
      options_(options),
      hparams_(architecture.hparams(file_)),
      shape_(make_shape(file_, architecture, hparams_)),
      layers_(hparams_.n_layer),
      global_list_(file_) {
    architecture.global_tensors(hparams_, global_list_, globals_);
    shape_.embedding = weight_cost(global_list_.tensors(), Part::embedding, hparams_);
    shape_.output = weight_cost(global_list_.tensors(), Part::output, hparams_);
    layer_lists_.reserve(layers_.size());
    for (size_t i = 0; i < layers_.size(); ++i) {
        TensorList& list = layer_lists_.emplace_back(file_);
        architecture.layer_tensors(hparams_, static_cast<int32_t>(i), list, layers_[i]);
        LayerShape& shape = shape_.layers[i];
        shape.attention = weight_cost(list.tensors(), Part::attention, hparams_);
        shape.ffn = weight_cost(list.tensors(), Part::ffn, hparams_);
        shape.other = weight_cost(list.tensors(), Part::other, hparams_);
    }
    refuse_unknown_tensors();
}

void Model::refuse_unknown_tensors() const {
    std::unordered_set<const gguf::TensorInfo*> known;
    const auto learn = [&](const TensorList& list) {
        for (const NamedTensor& tensor : list.tensors()) known.insert(tensor.info);
        known.insert(list.passed_over().begin(), list.passed_over().end());
    };
    learn(global_list_);
    for (const TensorList& list : layer_lists_) learn(list);
    for (const gguf::TensorInfo& info : file_.tensors()) {
        if (known.contains(&info) || info.name.ends_with(".input_scale")) continue;
        unsigned layer = 0;
        const bool in_mtp = std::sscanf(info.name.c_str(), "blk.%u.", &layer) == 1 &&
                            layer >= hparams_.n_layer &&
                            layer < hparams_.n_layer + hparams_.n_layer_nextn;
        if (in_mtp) continue;
        // Something this program does not compute: to leave it out would be another model.
        fail("{}: tensor {} has no place in a {} model with these keys ({} layers)", file_.path(),
             info.name, architecture_.name, hparams_.n_layer);
    }
}

const std::vector<NamedTensor>& Model::layer_tensors(int32_t index) const {
    return layer_lists_.at(static_cast<size_t>(index)).tensors();
}

uint64_t Model::loaded_bytes() const {
    const std::lock_guard lock(mutex_);
    return loaded_bytes_;
}

uint64_t Model::allocated_bytes() const {
    const std::lock_guard lock(mutex_);
    return allocated_bytes_;
}

void Model::load(const LayerPlan& plan, const LoadProgress& progress) {
    const std::lock_guard lock(mutex_);
    std::vector<const NamedTensor*> wanted;
    const auto want = [&](const NamedTensor& tensor) {
        if (*tensor.target == nullptr) wanted.push_back(&tensor);
    };
    for (const NamedTensor& tensor : global_list_.tensors()) want(tensor);

    struct Parts {
        bool attention = false;
        bool ffn = false;
        bool visited = false;
    };
    std::vector<Parts> parts(layers_.size());
    for (const Pass& pass : plan) {
        Parts& p = parts.at(static_cast<size_t>(pass.layer));
        p.visited = true;
        p.attention = p.attention || pass.attention;
        p.ffn = p.ffn || pass.ffn;
    }
    for (size_t i = 0; i < parts.size(); ++i) {
        for (const NamedTensor& tensor : layer_lists_[i].tensors()) {
            const bool runs = tensor.part == Part::attention ? parts[i].attention
                              : tensor.part == Part::ffn     ? parts[i].ffn
                                                             : parts[i].visited;
            if (runs) want(tensor);
        }
    }
    place(wanted, progress);
}

ggml_backend_buffer_t Model::mapped_buffer(uint32_t part) {
    ggml_backend_buffer_ptr& buffer = mapped_[part];
    if (!buffer) {
        const auto bytes = file_.parts().at(part).bytes();
        // ggml's interface has no const; weight buffers are never written through it.
        buffer.reset(ggml_backend_dev_buffer_from_host_ptr(
            cpu_device(), const_cast<std::byte*>(bytes.data()), bytes.size(), bytes.size()));
        if (!buffer) fail("{}: cannot make a buffer of the mapped file", file_.path());
        ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
    }
    return buffer.get();
}

void Model::place(const std::vector<const NamedTensor*>& wanted, const LoadProgress& progress) {
    if (wanted.empty()) return;
    ggml_context_ptr context(ggml_init({.mem_size = wanted.size() * ggml_tensor_overhead(),
                                        .mem_buffer = nullptr,
                                        .no_alloc = true}));
    if (!context) fail("{}: out of memory for {} tensor descriptions", file_.path(), wanted.size());

    // Nothing reaches `target` before everything is in place: a load that throws changes nothing.
    std::vector<ggml_tensor*> made(wanted.size());
    std::map<ggml_backend_buffer_type_t, std::vector<size_t>> copies;
    ggml_backend_buffer_type_t const plain = ggml_backend_dev_buffer_type(cpu_device());
    uint64_t loaded = 0;
    uint64_t total = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
        const gguf::TensorInfo& info = *wanted[i]->info;
        ggml_backend_buffer_type_t const type =
            choose_buffer_type(info, wanted[i]->use, options_.repack);
        made[i] = ggml_new_tensor(context.get(), info.type, info.n_dims, info.ne.data());
        ggml_set_name(made[i], info.name.c_str());
        total += info.bytes;
        if (type == plain && options_.use_mmap) {
            const std::byte* const address = file_.data(info).data();
            file_.parts().at(info.part).prefetch(info.offset, info.bytes);
            if (ggml_backend_tensor_alloc(mapped_buffer(info.part), made[i],
                                          const_cast<std::byte*>(address)) != GGML_STATUS_SUCCESS) {
                fail("{}: cannot place tensor {}", file_.path(), info.name);
            }
            // A tied output in the same memory as the embedding is one tensor in two roles.
            if (!wanted[i]->shared_bytes) loaded += info.bytes;
        } else {
            copies[type].push_back(i);
        }
    }

    uint64_t done = 0;
    std::vector<ggml_backend_buffer_ptr> buffers;
    uint64_t allocated = 0;
    for (const auto& [type, indices] : copies) {
        uint64_t bytes = 0;
        const uint64_t alignment = ggml_backend_buft_get_alignment(type);
        for (const size_t i : indices) {
            bytes += ggml_backend_buft_get_alloc_size(type, made[i]);
            bytes = (bytes + alignment - 1) / alignment * alignment;
        }
        ggml_backend_buffer_ptr buffer(ggml_backend_buft_alloc_buffer(type, bytes));
        if (!buffer) {
            fail("{}: cannot allocate {} bytes of {} for weights", file_.path(), bytes,
                 ggml_backend_buft_name(type));
        }
        ggml_backend_buffer_set_usage(buffer.get(), GGML_BACKEND_BUFFER_USAGE_WEIGHTS);
        ggml_tallocr allocator = ggml_tallocr_new(buffer.get());
        for (const size_t i : indices) {
            const gguf::TensorInfo& info = *wanted[i]->info;
            if (ggml_tallocr_alloc(&allocator, made[i]) != GGML_STATUS_SUCCESS) {
                fail("{}: cannot place tensor {}", file_.path(), info.name);
            }
            const auto data = file_.data(info);
            ggml_backend_tensor_set(made[i], data.data(), 0, data.size());
            // The copy is what computes from now on; the file's pages need not stay resident,
            // unless they serve as the embedding too.
            if (!wanted[i]->shared_bytes)
                file_.parts().at(info.part).release(info.offset, info.bytes);
            done += info.bytes;
            if (progress && !progress(static_cast<float>(done) / static_cast<float>(total))) {
                fail("{}: loading cancelled", file_.path());
            }
        }
        allocated += bytes;
        buffers.push_back(std::move(buffer));
    }
    if (progress) progress(1.0F);

    for (size_t i = 0; i < wanted.size(); ++i) *wanted[i]->target = made[i];
    contexts_.push_back(std::move(context));
    for (ggml_backend_buffer_ptr& buffer : buffers) buffers_.push_back(std::move(buffer));
    allocated_bytes_ += allocated;
    loaded_bytes_ += loaded + allocated;
}

}  // namespace pleat
