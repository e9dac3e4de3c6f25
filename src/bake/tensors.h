#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "bake/pass_form.h"
#include "gguf/file.h"
#include "model/model.h"
#include "plan/plan.h"

namespace pleat {

/// A tensor of the baked file: one of the model's, under its new name, and what becomes of it.
struct BakedTensor {
    const gguf::TensorInfo* source = nullptr;
    std::string name = {};
    /// Its first `changed_bytes` are multiplied by this, in zeros and powers of two exactly; the
    /// others are copied. With 1 all are.
    float factor = 1.0F;
    uint64_t changed_bytes = 0;
    std::string reason = {};  ///< for messages: "[scale=0.7] of pass 5 (layer 3)"
    /// The tensor holds a slice for each of `n_slice` layers along `layer_axis`; these are picked.
    int layer_axis = -1;
    int64_t n_slice = 0;
    std::vector<int32_t> slices = {};

    std::vector<int64_t> ne() const;
};

/// All tensors in the order of the file: those before the layers, those of each pass, the rest.
/// `forms` has one entry per pass. Throws Error when a factor meets a type that cannot take it.
std::vector<BakedTensor> baked_tensors(const Model& model, const LayerPlan& plan,
                                       const std::vector<PassForm>& forms);

/// Gives the tensor's bytes to the sink, piece by piece. Throws Error when a product is beyond its
/// type; adds a warning when some were rounded.
void write_tensor(const gguf::File& file, const BakedTensor& tensor,
                  const std::function<void(std::span<const std::byte>)>& sink,
                  std::vector<std::string>& warnings);

}  // namespace pleat
