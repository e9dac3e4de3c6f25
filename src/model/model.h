#pragma once

#include <ggml-cpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gguf/file.h"
#include "model/architecture.h"
#include "model/backend.h"
#include "model/hparams.h"
#include "model/tensor_list.h"
#include "model/weights.h"
#include "plan/plan.h"
#include "plan/shape.h"

namespace pleat {

struct ModelOptions {
    bool use_mmap = true;  ///< false: plain weights are copied into memory of our own
    bool repack = true;    ///< false: no extra buffer types (slower kernels, other bits)
};

/// Called while weights load with the fraction done, 0 to 1; returning false cancels with an Error.
using LoadProgress = std::function<bool(float fraction)>;

/// A GGUF model: its header at once, its weights when a plan first needs them. Shared by all
/// contexts; loading is additive and locked, and what was loaded neither moves nor changes.
class Model {
  public:
    /// Reads and proves the header against the architecture; no weight is read. Throws Error.
    Model(gguf::File file, const Architecture& architecture, ModelOptions options = {});
    Model(const Model&) = delete;
    Model& operator=(const Model&) = delete;

    const gguf::File& file() const { return file_; }
    const Architecture& architecture() const { return architecture_; }
    const Hparams& hparams() const { return hparams_; }
    const ModelShape& shape() const { return shape_; }

    /// Loads what the plan runs and is not loaded yet. Throws Error; what was loaded before stays.
    void load(const LayerPlan& plan, const LoadProgress& progress = {});

    const Layer& layer(int32_t index) const { return layers_.at(static_cast<size_t>(index)); }
    const Globals& globals() const { return globals_; }

    /// Tensors of one layer, and those outside the layers, as the architecture asked for them.
    const std::vector<NamedTensor>& layer_tensors(int32_t index) const;
    const std::vector<NamedTensor>& global_tensors() const { return global_list_.tensors(); }

    /// Bytes of the tensors that are loaded: mapped ones as they lie in the file, others as
    /// allocated.
    uint64_t loaded_bytes() const;
    /// Of these, bytes in buffers of our own (repacked copies; everything without mmap).
    uint64_t allocated_bytes() const;

  private:
    void refuse_unknown_tensors() const;
    void place(const std::vector<const NamedTensor*>& wanted, const LoadProgress& progress);
    ggml_backend_buffer_t mapped_buffer(uint32_t part);

    gguf::File file_;
    const Architecture& architecture_;
    ModelOptions options_;
    Hparams hparams_;
    ModelShape shape_;
    std::vector<Layer> layers_;
    Globals globals_;
    TensorList global_list_;
    std::vector<TensorList> layer_lists_;

    mutable std::mutex mutex_;
    std::vector<ggml_context_ptr> contexts_;
    std::map<uint32_t, ggml_backend_buffer_ptr> mapped_;  ///< by part of a split file
    std::vector<ggml_backend_buffer_ptr> buffers_;
    uint64_t loaded_bytes_ = 0;
    uint64_t allocated_bytes_ = 0;
};

/// Adds up the tensors of a part. `used_fraction` of experts' bytes are read per token.
WeightCost weight_cost(const std::vector<NamedTensor>& tensors, Part part, const Hparams& hparams);

}  // namespace pleat
