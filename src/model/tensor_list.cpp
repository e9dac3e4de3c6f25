#include "model/tensor_list.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "base/error.h"

namespace pleat {
namespace {

/// What the CPU's kernels take in this role; anything else would abort inside ggml.
bool usable(Use use, ggml_type type) {
    switch (use) {
        case Use::get_rows:
        case Use::mul_mat:
        case Use::mul_mat_id:
            // Types that only activations have (q8_1, q8_K) are quantised too, but nothing reads
            // them as weights.
            return type == GGML_TYPE_F32 || type == GGML_TYPE_F16 || type == GGML_TYPE_BF16 ||
                   (ggml_is_quantized(type) && ggml_get_type_traits(type)->to_float != nullptr);
        case Use::mul:
        case Use::add:
        case Use::rope_factors:
        case Use::conv:
            return type == GGML_TYPE_F32;
    }
    return false;
}

}  // namespace

bool TensorList::add(Part part, Use use, const std::string& name, ggml_tensor*& target,
                     const std::vector<int64_t>& ne, Need need) {
    const gguf::TensorInfo* const info = file_.find_tensor(name);
    if (info == nullptr) {
        if (need == Need::required) fail("{}: tensor {} is missing", file_.path(), name);
        return false;
    }
    bool equal = true;
    for (size_t i = 0; i < info->ne.size(); ++i) {
        equal = equal && info->ne.at(i) == (i < ne.size() ? ne.at(i) : 1);
    }
    if (!equal) {
        const auto found = std::span(info->ne).first(static_cast<size_t>(info->n_dims));
        fail("{}: tensor {} has shape [{}], expected [{}]", file_.path(), name,
             fmt::join(found, ", "), fmt::join(ne, ", "));
    }
    if (!usable(use, info->type)) {
        fail("{}: tensor {} has type {}, expected {}", file_.path(), name,
             ggml_type_name(info->type),
             usable(use, GGML_TYPE_F16) ? "f32, f16, bf16 or a quantised type of weights" : "f32");
    }
    tensors_.push_back({.info = info, .part = part, .use = use, .target = &target});
    return true;
}

void TensorList::vector(Part part, Use use, const std::string& name, ggml_tensor*& target,
                        int64_t n, Need need) {
    add(part, use, name, target, {n}, need);
}

void TensorList::linear(Part part, const std::string& name, Linear& target, int64_t n_in,
                        int64_t n_out, Companions companions, Need need) {
    if (!add(part, Use::mul_mat, name + ".weight", target.weight, {n_in, n_out}, need)) return;
    if (companions.bias) add(part, Use::add, name + ".bias", target.bias, {n_out}, Need::optional);
    add_scale(part, name, target, 1, companions.scale);
}

void TensorList::experts(Part part, const std::string& name, Linear& target, int64_t n_in,
                         int64_t n_out, int64_t n_expert, Scale scale) {
    add(part, Use::mul_mat_id, name + ".weight", target.weight, {n_in, n_out, n_expert},
        Need::required);
    add_scale(part, name, target, n_expert, scale);
}

void TensorList::add_scale(Part part, const std::string& name, Linear& target, int64_t n,
                           Scale scale) {
    switch (scale) {
        case Scale::refused:
            break;  // an unknown tensor like any other
        case Scale::unused:
            pass_over(name + ".scale");
            break;
        case Scale::applied:
            add(part, Use::mul, name + ".scale", target.scale, {n}, Need::optional);
            break;
    }
}

void TensorList::matrix(Part part, Use use, const std::string& name, ggml_tensor*& target,
                        const std::vector<int64_t>& ne, Need need) {
    add(part, use, name, target, ne, need);
}

void TensorList::tied(Part part, Use use, const std::string& name, ggml_tensor*& target) {
    const gguf::TensorInfo* const info = file_.find_tensor(name);
    if (info == nullptr) fail("{}: tensor {} is missing", file_.path(), name);
    tensors_.push_back(
        {.info = info, .part = part, .use = use, .target = &target, .shared_bytes = true});
}

void TensorList::pass_over(const std::string& name) {
    const gguf::TensorInfo* const info = file_.find_tensor(name);
    if (info != nullptr) passed_over_.push_back(info);
}

void TensorList::mark_residual(const std::string& name) {
    for (NamedTensor& tensor : tensors_) {
        if (tensor.info->name == name + ".weight" || tensor.info->name == name + ".bias") {
            tensor.ends_sub_layer = true;
            tensor.takes_scale = true;
        }
    }
}

void TensorList::mark_post_norm(const std::string& name) {
    const auto norm = std::ranges::find_if(
        tensors_, [&](const NamedTensor& t) { return t.info->name == name + ".weight"; });
    for (NamedTensor& tensor : tensors_) {
        if (tensor.part == norm->part) tensor.takes_scale = false;
    }
    norm->takes_scale = true;
}

void TensorList::mark_layer_slices(const std::string& name, int axis) {
    for (NamedTensor& tensor : tensors_) {
        if (tensor.info->name == name) tensor.layer_axis = axis;
    }
}

}  // namespace pleat
