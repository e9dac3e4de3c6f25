#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/hparams.h"
#include "model/tensor_list.h"
#include "model/weights.h"

/// The tensors that several architectures have alike; each file lists what it takes of them.
namespace pleat {

inline constexpr Companions bias_and_scale{.bias = true, .scale = Scale::applied};
inline constexpr Companions only_scale{.bias = false, .scale = Scale::applied};
inline constexpr Companions unused_scale{.bias = false, .scale = Scale::unused};
inline constexpr Companions nothing{.bias = false, .scale = Scale::refused};

/// "blk.3.attn_q"
inline std::string layer_name(int32_t layer, std::string_view tensor) {
    return fmt::format("blk.{}.{}", layer, tensor);
}

/// Embedding, final norm and head; without a head of its own the model is tied.
void embedding_and_head(const Hparams& h, TensorList& list, Globals& g, bool head_bias = false);

/// Q, K and V, fused or apart.
void qkv(const Hparams& h, int32_t layer, TensorList& list, Layer& w, Companions companions);
/// The norms of Q and K heads.
void qk_norms(const Hparams& h, int32_t layer, TensorList& list, Layer& w);
/// The attention's output projection, which is what the sub-layer adds.
void attention_output(const Hparams& h, int32_t layer, TensorList& list, Layer& w,
                      Companions companions);

/// `ffn_gate`, `ffn_up`, `ffn_down` with a suffix ("" or "_shexp").
void gated_ffn(const Hparams& h, int32_t layer, std::string_view suffix, int64_t n_ff,
               TensorList& list, GatedFfn& w, Companions companions);

enum class MergedExperts { never, allowed };
/// Router and experts of width n_ff; where allowed, gate and up may be one tensor.
void experts(const Hparams& h, int32_t layer, int64_t n_ff, MergedExperts merged, TensorList& list,
             Experts& w);

}  // namespace pleat
