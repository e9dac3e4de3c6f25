#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "support/random_model.h"
#include "support/random_models.h"

// bench_model <shape> <out.gguf>: random weights with the shape of a known model, in F16. What a
// kernel costs depends on shapes and types, not on the numbers.
namespace pleat::test {
namespace {

/// Every period-th layer is full.
std::vector<bool> window_layers(int n_layer, int period) {
    std::vector<bool> window;
    for (int i = 0; i < n_layer; ++i) window.push_back(i % period != period - 1);
    return window;
}

/// Gemma 4 E2B: the layers without K/V of their own have an FFN of twice the width.
std::vector<int> gemma4_e2b_ffs() {
    std::vector<int> ffs(15, 6144);
    ffs.insert(ffs.end(), 20, 12288);
    return ffs;
}

/// Named after the models whose shapes they are; those that end in -small are as wide as one of the
/// family would be, but shorter and with fewer experts or vocabulary rows.
std::vector<NamedModel> shapes() {
    return {
        {"llama-1b",
         {.n_layer = 16,
          .n_embd = 2048,
          .n_head = 32,
          .n_head_kv = 8,
          .n_ff = 8192,
          .n_vocab = 128256,
          .n_ctx_train = 131072,
          .tied = true,
          .rope_freqs = true,
          .rope_freq_base = 500000.0F}},
        {"llama-190m",
         {.n_layer = 16,
          .n_embd = 768,
          .n_head = 12,
          .n_head_kv = 4,
          .n_ff = 3072,
          .n_vocab = 32000,
          .n_ctx_train = 8192,
          .tied = true}},
        {"llama-24l",
         {.n_layer = 24,
          .n_embd = 1024,
          .n_head = 16,
          .n_head_kv = 4,
          .n_ff = 2816,
          .n_vocab = 32000,
          .n_ctx_train = 8192,
          .tied = true,
          .tokenizer = true}},
        {"qwen2-1.5b",
         {.architecture = "qwen2",
          .n_layer = 28,
          .n_embd = 1536,
          .n_head = 12,
          .n_head_kv = 2,
          .n_ff = 8960,
          .n_vocab = 151936,
          .n_ctx_train = 32768,
          .tied = true,
          .biases = true,
          .rope_freq_base = 1e6F}},
        {"qwen3-1.7b",
         {.architecture = "qwen3",
          .n_layer = 28,
          .n_embd = 2048,
          .n_head = 16,
          .n_head_kv = 8,
          .head_dim = 128,
          .n_ff = 6144,
          .n_vocab = 151936,
          .n_ctx_train = 40960,
          .tied = true,
          .rope_freq_base = 1e6F}},
        {"qwen3moe-small",
         {.architecture = "qwen3moe",
          .n_layer = 16,
          .n_embd = 1024,
          .n_head = 16,
          .n_head_kv = 4,
          .head_dim = 128,
          .n_ff = 3072,
          .n_vocab = 151936,
          .n_ctx_train = 40960,
          .n_expert = 32,
          .n_expert_used = 4,
          .n_ff_exp = 768,
          .tied = true,
          .rope_freq_base = 1e6F}},
        {"gemma3-1b",
         {.architecture = "gemma3",
          .n_layer = 26,
          .n_embd = 1152,
          .n_head = 4,
          .n_head_kv = 1,
          .head_dim = 256,
          .n_ff = 6912,
          .n_vocab = 262144,
          .n_ctx_train = 32768,
          .tied = true,
          .rope_freq_base = 1e6F,
          .n_swa = 512}},
        {"qwen35-0.8b",
         {.architecture = "qwen35",
          .n_layer = 24,
          .n_embd = 1024,
          .n_head = 8,
          .n_head_kv = 2,
          .head_dim = 256,
          .n_ff = 3584,
          .n_vocab = 248320,
          .n_ctx_train = 262144,
          .tied = true,
          .n_rot = 64,
          .rope_freq_base = 1e7F,
          .ssm_state_size = 128,
          .ssm_n_group = 16,
          .ssm_n_head = 16}},
        {"qwen35moe-small",
         {.architecture = "qwen35moe",
          .n_layer = 16,
          .n_embd = 1024,
          .n_head = 8,
          .n_head_kv = 2,
          .head_dim = 256,
          .n_ff = 512,
          .n_vocab = 151936,
          .n_ctx_train = 262144,
          .n_expert = 32,
          .n_expert_used = 4,
          .n_ff_exp = 512,
          .n_ff_shexp = 512,
          .tied = true,
          .n_rot = 64,
          .rope_freq_base = 1e7F,
          .ssm_state_size = 128,
          .ssm_n_group = 16,
          .ssm_n_head = 32}},
        {"gemma4-e2b-small",
         {.architecture = "gemma4",
          .n_layer = 35,
          .n_embd = 1536,
          .n_head = 8,
          .n_head_kv = 1,
          .head_dim = 512,
          .head_dim_swa = 256,
          .n_ff_per_layer = gemma4_e2b_ffs(),
          .n_vocab = 32768,
          .n_ctx_train = 131072,
          .tied = true,
          .rope_freq_base = 1e6F,
          .softcap = 30,
          .n_swa = 512,
          .window_layers = window_layers(35, 5),
          .n_embd_per_layer = 256,
          .n_shared_kv = 20,
          .layer_output_scale = true}},
    };
}

int usage() {
    std::string names;
    for (const NamedModel& shape : shapes()) names += (names.empty() ? "" : "|") + shape.name;
    fmt::print(stderr, "usage: bench_model {} OUT.gguf\n", names);
    return 1;
}

}  // namespace
}  // namespace pleat::test

int main(int argc, char** argv) {
    using namespace pleat::test;
    try {
        if (argc != 3) return usage();
        const std::vector<NamedModel> all = shapes();
        const auto shape = std::ranges::find(all, std::string_view(argv[1]), &NamedModel::name);
        if (shape == all.end()) return usage();
        write_model(argv[2], shape->model, GGML_TYPE_F16);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_model: {}\n", error.what());
        return 1;
    }
}
