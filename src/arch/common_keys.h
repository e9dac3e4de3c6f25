#pragma once

#include <string_view>

#include "arch/keys.h"
#include "model/hparams.h"

namespace pleat {

/// May the file end in blocks for drafts (multi-token prediction)? Stock loads them in the hybrids
/// only; elsewhere the key would turn layers of the model into blocks that never run.
enum class Mtp { refused, allowed };

/// The keys that every architecture reads: sizes, head counts, norm epsilon, RoPE, experts. All
/// layers get role full_attention and the same RoPE. Checked so that no later step divides by zero,
/// overflows or trips ggml. Throws Error that names the file, the key, what was found and what is
/// expected.
Hparams read_common_keys(const Keys& keys, Mtp mtp = Mtp::refused);

/// The number of values in a head, for RoPE to turn in pairs: ggml reads beyond an odd one.
void require_even_head(const Keys& keys, std::string_view key, uint32_t head_dim);

/// Rotated dimensions of a head: an even number from 2 to head_dim.
int read_n_rot(const Keys& keys, std::string_view key, uint32_t fallback, uint32_t head_dim);

/// Every layer must have an FFN width.
void require_dense_ffn(const Keys& keys, const Hparams& h);
/// The model must have experts; sets their width.
void require_experts(const Keys& keys, Hparams& h);

/// RoPE must turn whole heads.
void require_whole_rotation(const Keys& keys, const Hparams& h);
void set_rope_mode(Hparams& h, int mode);

/// A sliding-window layer of the gemma families: its own RoPE base, nothing stretched.
void make_window_layer(LayerHparams& layer, float freq_base);

}  // namespace pleat
