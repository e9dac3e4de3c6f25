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

/// A small model of the llama architecture with seeded weights: real shapes in miniature. Every
/// tensor has its own stream of random numbers, named by seed and tensor, so two models that differ
/// in one setting agree in all other weights. Logits spread by about 2 around their mean.
struct RandomModel {
    uint32_t seed = 1;
    int n_layer = 4;
    int n_embd = 256;
    int n_head = 8;
    int n_head_kv = 4;
    int head_dim = 0;  ///< 0: n_embd / n_head, and then no key says so
    int n_ff = 512;
    int n_vocab = 512;
    int n_ctx_train = 2048;
    int n_expert = 0;  ///< 0: dense
    int n_expert_used = 0;
    bool tied = false;    ///< no output.weight
    bool biases = false;  ///< of q, k, v, the attention's output and, where dense, the FFN
    bool scales = false;  ///< a `.scale` beside every weight of a layer that stock takes one for
    bool fused_qkv = false;
    bool rope_freqs = false;

    float rope_freq_base = 10000.0F;
    std::string
        rope_scaling{};  ///< "": no key; none, linear, yarn; longrope has its factor tensors
    float rope_factor = 4.0F;
    int rope_orig_ctx = 512;

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
