#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pleat {

/// What kind of attention a source layer has. It belongs to the layer; every pass inherits it.
enum class Role {
    full_attention,       ///< ordinary causal self-attention, owns K/V
    local_attention,      ///< sliding window, owns a window's worth of K/V
    gated_attention,      ///< full attention with an output gate, owns K/V
    shared_kv_attention,  ///< attends over an earlier owner's K/V, owns none
    recurrent,            ///< conv and delta-net state instead of K/V; never droppable
};

std::string_view role_name(Role role);

/// May this role's attention be dropped?
bool droppable(Role role);

/// Does a pass of this role, with attention, own K/V?
bool owns_kv(Role role);

/// Weights of a part of the model, as the file stores them.
struct WeightCost {
    uint64_t resident_bytes = 0;  ///< all tensors of the part
    uint64_t read_bytes = 0;  ///< read per token: of experts only the used ones, one embedding row
    uint64_t flops = 0;       ///< matmul FLOPs per token, 2 per multiply-add
    bool operator==(const WeightCost&) const = default;
    WeightCost& operator+=(const WeightCost& other);
};

/// What the plan core knows about one source layer.
struct LayerShape {
    Role role = Role::full_attention;
    int32_t kv_owner = -1;  ///< shared_kv_attention: the owner's source layer; else -1
    uint32_t n_head = 0;
    uint32_t n_head_kv = 0;
    uint32_t head_dim_k = 0;  ///< K row = n_head_kv * head_dim_k elements per token
    uint32_t head_dim_v = 0;
    /// recurrent: elements (F32) of one sequence's convolution and delta-net states
    uint64_t n_conv_state = 0;
    uint64_t n_delta_state = 0;
    WeightCost attention;  ///< norms before and after it included
    WeightCost ffn;
    WeightCost other;  ///< runs in every pass, outside both sub-layers
    bool operator==(const LayerShape&) const = default;

    uint64_t state_bytes() const { return 4 * (n_conv_state + n_delta_state); }
};

/// What the plan core knows about a model: numbers from the header alone.
struct ModelShape {
    std::string architecture;
    std::string name;     ///< general.name, may be empty
    int32_t n_layer = 0;  ///< without MTP ("nextn") layers
    int32_t n_layer_nextn = 0;
    uint32_t n_embd = 0;
    uint32_t n_vocab = 0;
    uint32_t n_ctx_train = 0;
    uint32_t n_swa = 0;              ///< window of local_attention layers in tokens; 0 = none
    std::vector<LayerShape> layers;  ///< n_layer entries
    WeightCost embedding;  ///< token embedding (and what else runs once before the layers)
    WeightCost output;     ///< final norm and head; a tied head is read, not resident again
    bool operator==(const ModelShape&) const = default;

    /// Has it recurrent and attention layers both?
    bool hybrid() const;
};

}  // namespace pleat
