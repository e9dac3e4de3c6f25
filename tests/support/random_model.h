#pragma once

#include <ggml.h>
#include <llama.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gguf/value.h"
#include "support/temp_file.h"

namespace pleat::test {

/// A small model with seeded weights: real shapes in miniature. Every tensor has its own stream of
/// random numbers, named by seed and tensor, so two models that differ in one setting agree in all
/// other weights. Logits spread by about 2 around their mean. A setting that means nothing to the
/// architecture is refused.
struct RandomModel {
    /// As in `general.architecture`: llama, qwen2, qwen3, qwen3moe, gemma3, gemma4, qwen35,
    /// qwen35moe.
    std::string architecture = "llama";
    uint32_t seed = 1;
    int n_layer = 4;  ///< without the MTP block
    int n_embd = 256;
    int n_head = 8;
    int n_head_kv = 4;
    std::vector<int> n_head_kv_per_layer{};  ///< in place of the one number
    int head_dim = 0;      ///< 0: n_embd / n_head, and then only gemma4 has a key that says so
    int head_dim_swa = 0;  ///< of window layers; 0: as the others
    int n_ff = 512;
    std::vector<int> n_ff_per_layer{};  ///< in place of the one number
    int n_vocab = 512;
    int n_ctx_train = 2048;
    int n_expert = 0;  ///< 0: dense
    int n_expert_used = 0;
    int n_ff_exp = 0;             ///< width of an expert; 0: n_ff
    int n_ff_shexp = 0;           ///< width of the shared expert; 0: n_ff, and then no key says so
    bool merged_experts = false;  ///< gate and up of the experts in one tensor
    bool tied = false;            ///< no output.weight
    /// Of q, k, v; in llama also of the attention's output and the dense FFN, in qwen2 of the
    /// output.
    bool biases = false;
    /// A `.scale` beside every weight of a layer that stock takes one for, even where it then
    /// leaves it unused: the FFN of qwen2 and gemma3, K and V of layers that read those of others.
    bool scales = false;
    bool fused_qkv = false;
    bool rope_freqs = false;  ///< llama; gemma4 has them wherever a layer is full

    int n_rot = 0;  ///< rotated dimensions of a head; 0: all, and then only llama has a key
    float rope_freq_base = 10000.0F;
    float rope_freq_base_swa = 0;  ///< of window layers; 0: no key
    std::string
        rope_scaling{};  ///< "": no key; none, linear, yarn; longrope has its factor tensors
    float rope_factor = 4.0F;
    int rope_orig_ctx = 512;
    float softcap = 0;  ///< of the logits; 0: no key, and gemma4 then takes 30

    // gemma3, gemma4: window layers
    int n_swa = 0;                      ///< 0: no key, no window layers
    int window_pattern = 0;             ///< every which layer is full, as a number; 0: no key, 6
    std::vector<bool> window_layers{};  ///< the pattern as an array

    // gemma4
    int n_embd_per_layer = 0;
    int n_shared_kv = 0;     ///< last layers that read the K/V of earlier ones
    bool unused_kv = false;  ///< those layers have K and V weights that nobody reads
    bool v_from_k = false;   ///< full layers have no V weights
    bool layer_output_scale = false;

    // qwen35, qwen35moe: recurrent layers
    int ssm_state_size = 0;
    int ssm_n_group = 0;  ///< key heads
    int ssm_n_head = 0;   ///< value heads
    int ssm_conv_kernel = 4;
    int full_attention_interval = 0;       ///< 0: no key, 4
    std::vector<bool> recurrent_layers{};  ///< in place of the interval; empty: no key
    bool mtp = false;                      ///< one more block, for drafts

    /// A byte-level BPE vocabulary (see random_vocab.h); else a size and no tokens.
    bool tokenizer = false;
    uint32_t alignment = 32;

    /// Weights whose name contains the text get this type, whatever make_model is told; the first
    /// row that fits counts. Not for the mixes of stock's quantiser.
    std::vector<std::pair<std::string, ggml_type>> types{};
    /// More keys, last in the file.
    std::vector<gguf::KeyValue> metadata{};

    int head_size() const { return head_dim == 0 ? n_embd / n_head : head_dim; }
    bool operator==(const RandomModel&) const = default;
};

/// Writes the model to a file of the caller's, all matrices in one type as make_model has them; one
/// tensor at a time is in memory.
void write_model(const std::string& path, const RandomModel& model, ggml_type type);

/// The model with all matrices (the experts' router apart, as in stock) in one type, quantised by
/// ggml_quantize_chunk. A matrix whose rows are not whole blocks of the type becomes F16. Made once
/// a process; the file stays until it ends. Throws Error when the settings contradict each other.
const TempFile& make_model(const RandomModel& model, ggml_type type = GGML_TYPE_F32);

/// The model as stock's quantiser makes it: a mix of types, such as LLAMA_FTYPE_MOSTLY_Q4_K_M.
const TempFile& make_model(const RandomModel& model, llama_ftype mix);

/// "4L 256 8/4 ff512 v512 tied": what sets the model apart, for a test's trace.
std::string describe(const RandomModel& model);
void PrintTo(const RandomModel& model, std::ostream* out);

}  // namespace pleat::test
