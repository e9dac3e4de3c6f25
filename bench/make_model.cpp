#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "support/random_model.h"

// bench_model <shape> <out.gguf>: random weights with the shape of a known model, in F16. What a
// kernel costs depends on shapes and types, not on the numbers.
int main(int argc, char** argv) {
    using pleat::test::RandomModel;
    const RandomModel llama_1b{.n_layer = 16,
                               .n_embd = 2048,
                               .n_head = 32,
                               .n_head_kv = 8,
                               .n_ff = 8192,
                               .n_vocab = 128256,
                               .n_ctx_train = 131072,
                               .tied = true,
                               .rope_freqs = true,
                               .rope_freq_base = 500000.0F};
    const RandomModel llama_190m{.n_layer = 16,
                                 .n_embd = 768,
                                 .n_head = 12,
                                 .n_head_kv = 4,
                                 .n_ff = 3072,
                                 .n_vocab = 32000,
                                 .n_ctx_train = 8192,
                                 .tied = true};
    try {
        const std::string shape = argc == 3 ? argv[1] : "";
        if (shape != "llama-1b" && shape != "llama-190m") {
            fmt::print(stderr, "usage: bench_model llama-1b|llama-190m OUT.gguf\n");
            return 1;
        }
        pleat::test::write_model(argv[2], shape == "llama-1b" ? llama_1b : llama_190m,
                                 GGML_TYPE_F16);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_model: {}\n", error.what());
        return 1;
    }
}
