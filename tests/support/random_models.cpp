#include "support/random_models.h"

namespace pleat::test {
namespace {

/// Six heads over two, a vocabulary that is no multiple of anything.
RandomModel odd(RandomModel model) {
    model.n_embd = 192;
    model.n_head = 6;
    model.n_head_kv = 2;
    model.n_ff = 320;
    model.n_vocab = 500;
    return model;
}

RandomModel even(RandomModel model) {
    model.n_embd = 128;
    model.n_head = 4;
    model.n_head_kv = 2;
    model.n_ff = 256;
    model.n_vocab = 384;
    return model;
}

std::vector<NamedModel> qwen2() {
    const char* name = "qwen2";
    return {
        {"qwen2", even({.architecture = name, .n_layer = 3, .biases = true})},
        {"qwen2_without_biases", even({.architecture = name, .n_layer = 3})},
        {"qwen2_odd_tied", odd({.architecture = name, .n_layer = 3, .tied = true, .biases = true})},
        {"qwen2_fused_scales", even({.architecture = name,
                                     .n_layer = 3,
                                     .biases = true,
                                     .scales = true,
                                     .fused_qkv = true})},
        {"qwen2_yarn", even({.architecture = name,
                             .n_layer = 3,
                             .biases = true,
                             .rope_freq_base = 1e6F,
                             .rope_scaling = "yarn"})},
    };
}

std::vector<NamedModel> qwen3() {
    const char* name = "qwen3";
    return {
        {"qwen3", even({.architecture = name, .n_layer = 3, .head_dim = 64})},
        {"qwen3_odd_tied", odd({.architecture = name, .n_layer = 3, .tied = true})},
        {"qwen3_biases_scales",
         even(
             {.architecture = name, .n_layer = 3, .head_dim = 48, .biases = true, .scales = true})},
        {"qwen3_fused", even({.architecture = name,
                              .n_layer = 3,
                              .tied = true,
                              .biases = true,
                              .scales = true,
                              .fused_qkv = true})},
    };
}

std::vector<NamedModel> qwen3moe() {
    const char* name = "qwen3moe";
    return {
        {"qwen3moe", even({.architecture = name,
                           .n_layer = 3,
                           .head_dim = 64,
                           .n_expert = 8,
                           .n_expert_used = 3,
                           .n_ff_exp = 64})},
        {"qwen3moe_odd_tied_one_used", odd({.architecture = name,
                                            .n_layer = 3,
                                            .n_expert = 5,
                                            .n_expert_used = 1,
                                            .n_ff_exp = 96,
                                            .tied = true})},
        {"qwen3moe_fused_biases_scales", even({.architecture = name,
                                               .n_layer = 3,
                                               .n_expert = 4,
                                               .n_expert_used = 2,
                                               .n_ff_exp = 96,
                                               .biases = true,
                                               .scales = true,
                                               .fused_qkv = true})},
    };
}

std::vector<NamedModel> gemma3() {
    const char* name = "gemma3";
    return {
        {"gemma3", even({.architecture = name,
                         .n_layer = 12,
                         .tied = true,
                         .rope_freq_base = 1e6F,
                         .rope_scaling = "linear",
                         .rope_factor = 8,
                         .n_swa = 16})},
        {"gemma3_pattern_number", even({.architecture = name,
                                        .n_layer = 6,
                                        .head_dim = 64,
                                        .rope_freq_base = 1e6F,
                                        .rope_freq_base_swa = 20000,
                                        .softcap = 5,
                                        .n_swa = 16,
                                        .window_pattern = 3})},
        {"gemma3_pattern_array_odd", odd({.architecture = name,
                                          .n_layer = 5,
                                          .tied = true,
                                          .rope_freq_base = 1e6F,
                                          .n_swa = 16,
                                          .window_layers = {false, true, true, false, true}})},
        {"gemma3_windows_only", even({.architecture = name,
                                      .n_layer = 3,
                                      .tied = true,
                                      .n_swa = 16,
                                      .window_layers = {true, true, true}})},
        {"gemma3_without_window",
         even({.architecture = name, .n_layer = 3, .head_dim = 48, .tied = true})},
        {"gemma3_fused_biases_scales", even({.architecture = name,
                                             .n_layer = 6,
                                             .biases = true,
                                             .scales = true,
                                             .fused_qkv = true,
                                             .n_swa = 16,
                                             .window_pattern = 2})},
        {"gemma3_of_62_layers",
         {.architecture = name,
          .n_layer = 62,
          .n_embd = 64,
          .n_head = 2,
          .n_head_kv = 1,
          .head_dim = 16,
          .n_ff = 64,
          .n_vocab = 256,
          .tied = true,
          .rope_scaling = "linear",
          .rope_factor = 8,
          .n_swa = 16}},
    };
}

RandomModel delta_net(RandomModel model, int state_size, int n_group, int n_head) {
    model.ssm_state_size = state_size;
    model.ssm_n_group = n_group;
    model.ssm_n_head = n_head;
    return model;
}

std::vector<NamedModel> qwen35() {
    const char* name = "qwen35";
    return {
        {"qwen35",
         delta_net(even({.architecture = name, .n_layer = 8, .head_dim = 64, .n_rot = 16}), 32, 4,
                   4)},
        {"qwen35_odd_tied_more_value_heads",
         delta_net(
             odd({.architecture = name, .n_layer = 3, .tied = true, .full_attention_interval = 3}),
             16, 3, 6)},
        {"qwen35_interval_2_biases_scales_mtp", delta_net(even({.architecture = name,
                                                                .n_layer = 4,
                                                                .biases = true,
                                                                .scales = true,
                                                                .full_attention_interval = 2,
                                                                .mtp = true}),
                                                          32, 2, 8)},
        {"qwen35_array", delta_net(even({.architecture = name,
                                         .n_layer = 5,
                                         .head_dim = 64,
                                         .tied = true,
                                         .n_rot = 32,
                                         .rope_freq_base = 1e6F,
                                         .ssm_conv_kernel = 3,
                                         .recurrent_layers = {false, true, true, false, true}}),
                                   64, 2, 2)},
        {"qwen35_fused", delta_net(even({.architecture = name,
                                         .n_layer = 3,
                                         .biases = true,
                                         .scales = true,
                                         .fused_qkv = true,
                                         .full_attention_interval = 2,
                                         .mtp = true}),
                                   16, 2, 4)},
        {"qwen35_array_mtp", delta_net(even({.architecture = name,
                                             .n_layer = 4,
                                             .n_rot = 16,
                                             .recurrent_layers = {true, false, true, true},
                                             .mtp = true}),
                                       32, 1, 3)},
    };
}

std::vector<NamedModel> qwen35moe() {
    const char* name = "qwen35moe";
    return {
        {"qwen35moe_merged", delta_net(even({.architecture = name,
                                             .n_layer = 4,
                                             .head_dim = 64,
                                             .n_expert = 8,
                                             .n_expert_used = 3,
                                             .n_ff_exp = 64,
                                             .n_ff_shexp = 96,
                                             .merged_experts = true,
                                             .n_rot = 16,
                                             .mtp = true}),
                                       32, 2, 4)},
        {"qwen35moe_odd_tied", delta_net(odd({.architecture = name,
                                              .n_layer = 4,
                                              .n_expert = 5,
                                              .n_expert_used = 2,
                                              .n_ff_exp = 96,
                                              .tied = true,
                                              .full_attention_interval = 2}),
                                         32, 3, 3)},
        {"qwen35moe_scales", delta_net(even({.architecture = name,
                                             .n_layer = 3,
                                             .n_expert = 4,
                                             .n_expert_used = 1,
                                             .n_ff_exp = 64,
                                             .n_ff_shexp = 64,
                                             .scales = true,
                                             .full_attention_interval = 3}),
                                       16, 2, 4)},
        {"qwen35moe_merged_scales", delta_net(even({.architecture = name,
                                                    .n_layer = 3,
                                                    .n_expert = 4,
                                                    .n_expert_used = 2,
                                                    .n_ff_exp = 64,
                                                    .n_ff_shexp = 64,
                                                    .merged_experts = true,
                                                    .biases = true,
                                                    .scales = true,
                                                    .recurrent_layers = {true, false, true}}),
                                              16, 4, 4)},
    };
}

std::vector<NamedModel> gemma4() {
    const char* name = "gemma4";
    const std::vector<bool> wwf_wwf{true, true, false, true, true, false};
    return {
        {"gemma4", even({.architecture = name,
                         .n_layer = 6,
                         .head_dim = 64,
                         .head_dim_swa = 32,
                         .tied = true,
                         .rope_freq_base = 1e6F,
                         .softcap = 30,
                         .n_swa = 16,
                         .window_layers = wwf_wwf})},
        {"gemma4_odd_untied", odd({.architecture = name,
                                   .n_layer = 4,
                                   .head_dim = 48,
                                   .head_dim_swa = 80,
                                   .n_swa = 16,
                                   .window_layers = {false, true, true, false},
                                   .layer_output_scale = true})},
        {"gemma4_windows_only", even({.architecture = name,
                                      .n_layer = 3,
                                      .head_dim = 64,
                                      .head_dim_swa = 32,
                                      .tied = true,
                                      .n_swa = 16,
                                      .window_layers = {true, true, true}})},
        {"gemma4_shared_kv", even({.architecture = name,
                                   .n_layer = 6,
                                   .head_dim = 128,
                                   .head_dim_swa = 64,
                                   .n_ff_per_layer = {192, 192, 192, 384, 384, 384},
                                   .tied = true,
                                   .rope_freq_base = 1e6F,
                                   .softcap = 30,
                                   .n_swa = 16,
                                   .window_layers = wwf_wwf,
                                   .n_embd_per_layer = 32,
                                   .n_shared_kv = 3,
                                   .layer_output_scale = true})},
        {"gemma4_unused_kv_scales", even({.architecture = name,
                                          .n_layer = 5,
                                          .head_dim = 64,
                                          .head_dim_swa = 32,
                                          .tied = true,
                                          .scales = true,
                                          .n_swa = 16,
                                          .window_layers = {false, true, false, false, true},
                                          .n_embd_per_layer = 24,
                                          .n_shared_kv = 2,
                                          .unused_kv = true})},
        {"gemma4_kv_heads_v_from_k", even({.architecture = name,
                                           .n_layer = 4,
                                           .n_head_kv_per_layer = {4, 1, 4, 1},
                                           .head_dim = 64,
                                           .head_dim_swa = 32,
                                           .tied = true,
                                           .softcap = 10,
                                           .n_swa = 16,
                                           .window_layers = {true, false, true, false},
                                           .v_from_k = true})},
        {"gemma4_experts", even({.architecture = name,
                                 .n_layer = 3,
                                 .head_dim = 64,
                                 .head_dim_swa = 32,
                                 .n_expert = 4,
                                 .n_expert_used = 2,
                                 .n_ff_exp = 96,
                                 .tied = true,
                                 .scales = true,
                                 .n_swa = 16,
                                 .window_layers = {true, true, false},
                                 .v_from_k = true,
                                 .layer_output_scale = true})},
        {"gemma4_merged_experts", even({.architecture = name,
                                        .n_layer = 3,
                                        .n_head_kv_per_layer = {2, 1, 2},
                                        .head_dim = 32,
                                        .n_expert = 8,
                                        .n_expert_used = 3,
                                        .n_ff_exp = 64,
                                        .merged_experts = true,
                                        .scales = true,
                                        .n_swa = 16,
                                        .window_layers = {true, false, true},
                                        .layer_output_scale = true,
                                        .metadata = {{"gemma4.final_logit_softcapping", 0.0F}}})},
        {"gemma4_fused", even({.architecture = name,
                               .n_layer = 3,
                               .head_dim = 64,
                               .head_dim_swa = 32,
                               .tied = true,
                               .scales = true,
                               .fused_qkv = true,
                               .n_swa = 16,
                               .window_layers = {true, false, true}})},
    };
}

std::vector<NamedModel> all_models() {
    std::vector<NamedModel> all;
    for (const auto& models :
         {qwen2(), qwen3(), qwen3moe(), gemma3(), gemma4(), qwen35(), qwen35moe()}) {
        all.insert(all.end(), models.begin(), models.end());
    }
    return all;
}

}  // namespace

void PrintTo(const NamedModel& named, std::ostream* out) {
    *out << named.name << ": " << describe(named.model);
}

const std::vector<NamedModel>& architecture_models() {
    static const std::vector<NamedModel> models = all_models();
    return models;
}

std::vector<NamedModel> models_for_plans() {
    std::vector<NamedModel> models{{"llama", {}},
                                   {"llama_experts", {.n_expert = 4, .n_expert_used = 2}}};
    for (const NamedModel& named : architecture_models()) {
        const std::string& n = named.name;
        if (n == "qwen2" || n == "qwen3" || n == "qwen3moe" || n == "gemma3" || n == "qwen35" ||
            n == "qwen35_interval_2_biases_scales_mtp" || n == "qwen35moe_merged" ||
            n == "gemma4") {
            models.push_back(named);
        }
    }
    return models;
}

}  // namespace pleat::test
