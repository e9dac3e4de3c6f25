#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/shape.h"
#include "plan/spec.h"

namespace pleat {

inline constexpr int32_t no_slot = -1;

/// One traversal of a source layer. Downstream takes a `const Pass&`, never a bare index that could
/// mean a layer in one call and a cache slot in the next.
struct Pass {
    int32_t layer = 0;       ///< source layer: its weights, role, window, RoPE base, device
    int32_t slot = no_slot;  ///< cache of its K/V or state; its owner's for a shared-KV consumer
    bool attention = true;
    bool ffn = true;
    float scale = 1.0F;     ///< factor on both sub-layers' outputs before the residual add
    float qk_scale = 1.0F;  ///< factor on this pass's attention scale
    bool operator==(const Pass&) const = default;
};

/// One cache slot that the plan needs, in order of first use; Pass::slot indexes this list.
struct Slot {
    int32_t layer = 0;  ///< source layer that writes it: role and sizes come from its shape
    int32_t pass = 0;   ///< the pass that writes it
    bool operator==(const Slot&) const = default;
};

/// A place p in the path where layer(p) is not layer(p-1) + 1.
struct Seam {
    int32_t pass = 0;
    int32_t from = 0;  ///< layer(p-1)
    int32_t to = 0;    ///< layer(p)
    bool operator==(const Seam&) const = default;
};

/// A maximal run of passes that visit layers ascending by one that were all visited before:
/// a copy that the plan inserted. Layers [begin, end), at passes [pass, pass + end - begin).
struct InsertedCopy {
    int32_t begin = 0;
    int32_t end = 0;
    int32_t pass = 0;
    bool operator==(const InsertedCopy&) const = default;
};

/// The validated, immutable list of passes, with the cache slots they need.
class LayerPlan {
  public:
    /// Resolves and validates a spec against a model. Throws Error by the rules of docs/plans.md.
    static LayerPlan resolve(const Spec& spec, const ModelShape& shape);

    const Pass& operator[](size_t i) const { return passes_[i]; }
    size_t size() const { return passes_.size(); }
    auto begin() const { return passes_.begin(); }
    auto end() const { return passes_.end(); }

    const std::vector<Slot>& slots() const { return slots_; }
    /// One line each, printed but not blocking.
    const std::vector<std::string>& warnings() const { return warnings_; }

    bool is_identity() const { return identity_; }
    std::vector<Seam> seams() const;
    std::vector<InsertedCopy> inserted_copies() const;

    /// The canonical `--layers` text; resolves to the same plan on the same model.
    std::string canonical() const;

    /// 16 hex digits of FNV-1a (64 bit) over the canonical text: names what a cache was made under.
    std::string hash() const;

    bool operator==(const LayerPlan& other) const { return passes_ == other.passes_; }

  private:
    LayerPlan() = default;

    std::vector<Pass> passes_;
    std::vector<Slot> slots_;
    std::vector<std::string> warnings_;
    bool identity_ = false;
};

}  // namespace pleat
