#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "model/weights.h"

namespace pleat {

/// What a tensor serves; a plan decides by it whether the tensor is loaded.
enum class Part { embedding, output, attention, ffn, other };

/// The operation a weight is used in. It decides the buffer type the weight is placed in.
enum class Use { get_rows, mul_mat, mul_mat_id, mul, add, rope_factors, conv };

/// One tensor that a model needs: found in the file, its shape and type proved.
struct NamedTensor {
    const gguf::TensorInfo* info = nullptr;
    Part part = Part::other;
    Use use = Use::mul_mat;
    ggml_tensor** target = nullptr;  ///< set when the tensor is loaded
    bool ends_sub_layer = false;     ///< output projection: zero it and the sub-layer adds nothing
    bool takes_scale = false;        ///< multiply it and all the sub-layer adds is multiplied
    int layer_axis = -1;  ///< of a global tensor: the dimension that holds a slice of every layer
    bool shared_bytes = false;  ///< another NamedTensor already counts these bytes (tied output)
};

enum class Need { required, optional };

/// What stock does with a `.scale` beside a weight: it takes some without applying them.
enum class Scale { refused, unused, applied };

/// What may stand beside a weight.
struct Companions {
    bool bias = true;
    Scale scale = Scale::applied;
};

/// Collects what an architecture asks for, against what the file holds. Each call looks one tensor
/// up by its exact name and throws Error when it is required and absent, or when its shape or type
/// is not what the metadata says.
class TensorList {
  public:
    explicit TensorList(const gguf::File& file) : file_(file) {}

    bool has(const std::string& name) const { return file_.find_tensor(name) != nullptr; }

    /// A vector that is multiplied, added or given to RoPE: F32 [n].
    void vector(Part part, Use use, const std::string& name, ggml_tensor*& target, int64_t n,
                Need need = Need::required);

    /// `<name>.weight` [n_in, n_out] with its optional `.bias` and `.scale`.
    void linear(Part part, const std::string& name, Linear& target, int64_t n_in, int64_t n_out,
                Companions companions = {}, Need need = Need::required);
    /// `<name>.weight` [n_in, n_out, n_expert] with its optional `.scale`.
    void experts(Part part, const std::string& name, Linear& target, int64_t n_in, int64_t n_out,
                 int64_t n_expert, Scale scale = Scale::applied);
    /// A single matrix under its full name.
    void matrix(Part part, Use use, const std::string& name, ggml_tensor*& target,
                const std::vector<int64_t>& ne, Need need = Need::required);
    /// The same file tensor once more in another role (tied output).
    void tied(Part part, Use use, const std::string& name, ggml_tensor*& target);

    /// A tensor that stock takes without using it: neither unknown nor loaded.
    void pass_over(const std::string& name);

    /// `<name>.weight` and `.bias` end a sub-layer: their sum is what it adds to the residual.
    void mark_residual(const std::string& name);
    /// A norm stands behind them: it is what a factor on the sub-layer's result goes into.
    void mark_post_norm(const std::string& name);

    /// The tensor holds a slice for every layer of the model, along this dimension.
    void mark_layer_slices(const std::string& name, int axis);

    const std::vector<NamedTensor>& tensors() const { return tensors_; }
    const std::vector<const gguf::TensorInfo*>& passed_over() const { return passed_over_; }
    const gguf::File& file() const { return file_; }

  private:
    bool add(Part part, Use use, const std::string& name, ggml_tensor*& target,
             const std::vector<int64_t>& ne, Need need);
    void add_scale(Part part, const std::string& name, Linear& target, int64_t n, Scale scale);

    const gguf::File& file_;
    std::vector<NamedTensor> tensors_;
    std::vector<const gguf::TensorInfo*> passed_over_;
};

}  // namespace pleat
