#include "support/random_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "support/random_shape.h"

namespace pleat::test {
namespace {

using Architectures = std::vector<std::string_view>;

const Architectures all{"llama",  "qwen2",  "qwen3",  "qwen3moe",
                        "gemma3", "gemma4", "qwen35", "qwen35moe"};

/// A setting that is not at its default.
struct Setting {
    bool set;
    std::string text;
    Architectures architectures = all;  ///< those that it means something to
};

/// "wwf" for two window layers and a full one.
std::string marks(const std::vector<bool>& layers, char yes, char no) {
    std::string text;
    for (const bool layer : layers) text += layer ? yes : no;
    return text;
}

std::vector<Setting> settings(const RandomModel& m) {
    const Architectures experts{"llama", "qwen3moe", "qwen35moe", "gemma4"};
    const Architectures gemma{"gemma3", "gemma4"};
    const Architectures gemma4{"gemma4"};
    const Architectures qwen35{"qwen35", "qwen35moe"};
    return {
        {m.head_dim != 0, fmt::format("d{}", m.head_dim)},
        {m.n_expert != 0, fmt::format("experts {}/{}", m.n_expert_used, m.n_expert), experts},
        {m.tied, "tied"},
        {m.biases,
         "biases",
         {"llama", "qwen2", "qwen3", "qwen3moe", "gemma3", "qwen35", "qwen35moe"}},
        {m.scales, "scales"},
        {m.fused_qkv, "fused_qkv"},
        {m.rope_freqs, "rope_freqs", {"llama"}},
        {m.tokenizer, "tokenizer"},
        {!m.types.empty(), "types"},
        {!m.metadata.empty(), "keys"},
        {!m.rope_scaling.empty(), fmt::format("{} {}", m.rope_scaling, m.rope_factor)},
        {m.alignment != 32, fmt::format("alignment {}", m.alignment)},

        {!m.n_head_kv_per_layer.empty(),
         fmt::format("kv {}", fmt::join(m.n_head_kv_per_layer, ",")), gemma4},
        {m.head_dim_swa != 0, fmt::format("d_swa {}", m.head_dim_swa), gemma4},
        {!m.n_ff_per_layer.empty(), fmt::format("ff {}", fmt::join(m.n_ff_per_layer, ",")), gemma4},
        {m.n_ff_exp != 0,
         fmt::format("ff_exp {}", m.n_ff_exp),
         {"qwen3moe", "qwen35moe", "gemma4"}},
        {m.n_ff_shexp != 0, fmt::format("ff_shexp {}", m.n_ff_shexp), {"qwen35moe"}},
        {m.merged_experts, "merged_experts", {"qwen35moe", "gemma4"}},
        {m.n_rot != 0,
         fmt::format("rot {}", m.n_rot),
         {"gemma3", "gemma4", "qwen35", "qwen35moe"}},  // the others rotate all, or stock ends
        {m.rope_freq_base_swa != 0, fmt::format("base_swa {}", m.rope_freq_base_swa), gemma},
        {m.softcap != 0, fmt::format("softcap {}", m.softcap), gemma},
        {m.n_swa != 0, fmt::format("swa {}", m.n_swa), gemma},
        {m.window_pattern != 0, fmt::format("pattern {}", m.window_pattern), {"gemma3"}},
        {!m.window_layers.empty(), marks(m.window_layers, 'w', 'f'), gemma},
        {m.n_embd_per_layer != 0, fmt::format("per_layer {}", m.n_embd_per_layer), gemma4},
        {m.n_shared_kv != 0, fmt::format("shared_kv {}", m.n_shared_kv), gemma4},
        {m.unused_kv, "unused_kv", gemma4},
        {m.v_from_k, "v_from_k", gemma4},
        {m.layer_output_scale, "layer_output_scale", gemma4},
        {m.ssm_state_size != 0, fmt::format("ssm {}", m.ssm_state_size), qwen35},
        {m.ssm_n_group != 0, fmt::format("groups {}", m.ssm_n_group), qwen35},
        {m.ssm_n_head != 0, fmt::format("ssm_heads {}", m.ssm_n_head), qwen35},
        {m.ssm_conv_kernel != 4, fmt::format("conv {}", m.ssm_conv_kernel), qwen35},
        {m.full_attention_interval != 0, fmt::format("interval {}", m.full_attention_interval),
         qwen35},
        {!m.recurrent_layers.empty(), marks(m.recurrent_layers, 'r', 'a'), qwen35},
        {m.mtp, "mtp", qwen35},
    };
}

void check_heads(const RandomModel& model) {
    if (model.head_dim == 0 && model.n_embd % model.n_head != 0) {
        fail("{} heads in {} are no model", model.n_head, model.n_embd);
    }
    for (int i = 0; i < model.n_layer; ++i) {
        if (model.n_head % n_head_kv(model, i) != 0 || head_size(model, i) % 2 != 0) {
            fail("{} heads over {} of size {} in {} are no model", model.n_head,
                 n_head_kv(model, i), head_size(model, i), model.n_embd);
        }
    }
}

void check_experts(const RandomModel& model) {
    if (model.n_expert_used > model.n_expert || (model.n_expert > 0 && model.n_expert_used < 1)) {
        fail("{} of {} experts cannot be used", model.n_expert_used, model.n_expert);
    }
    if (model.architecture.ends_with("moe") && model.n_expert == 0) {
        fail("{} needs experts", model.architecture);
    }
    if ((model.n_ff_exp != 0 || model.merged_experts) && model.n_expert == 0) {
        fail("there are no experts whose width or form could be set");
    }
}

void check_windows(const RandomModel& model) {
    const bool pattern = model.window_pattern != 0 || !model.window_layers.empty();
    if (pattern && model.n_swa == 0) fail("a pattern of window layers without n_swa");
    if (model.window_pattern != 0 && !model.window_layers.empty()) {
        fail("window_pattern and window_layers are one key");
    }
    if (model.architecture == "gemma4" && model.window_layers.empty()) {
        fail("gemma4 needs n_swa and window_layers");
    }
}

/// The view of an owner's cache has the consumer's shape.
void check_shared_kv(const RandomModel& model) {
    const int n_own = model.n_layer - model.n_shared_kv;
    if (model.n_shared_kv == 0) {
        if (model.unused_kv) fail("unused_kv without shared K/V");
        return;
    }
    if (n_own < 2)
        fail("{} of {} layers share K/V, at least 2 must own it", model.n_shared_kv, model.n_layer);
    for (int i = n_own; i < model.n_layer; ++i) {
        const int owner = is_window(model, i) ? n_own - 2 : n_own - 1;
        if (is_window(model, i) != is_window(model, owner) ||
            n_head_kv(model, i) != n_head_kv(model, owner)) {
            fail("layer {} cannot read the K/V of layer {}", i, owner);
        }
    }
}

void check_recurrent(const RandomModel& model) {
    if (!is_qwen35(model)) return;
    if (model.ssm_state_size < 1 || model.ssm_n_group < 1 || model.ssm_n_head < 1 ||
        model.ssm_conv_kernel < 2 || model.ssm_n_head % model.ssm_n_group != 0) {
        fail("{} value heads over {} key heads of size {} with a kernel of {} are no {}",
             model.ssm_n_head, model.ssm_n_group, model.ssm_state_size, model.ssm_conv_kernel,
             model.architecture);
    }
    if (model.full_attention_interval != 0 && !model.recurrent_layers.empty()) {
        fail("full_attention_interval and recurrent_layers say the same");
    }
}

void check_one_per_layer(const RandomModel& model, const char* name, size_t size) {
    if (size != 0 && size != static_cast<size_t>(model.n_layer)) {
        fail("{} has {} entries for {} layers", name, size, model.n_layer);
    }
}

}  // namespace

void check(const RandomModel& model) {
    if (std::ranges::find(all, model.architecture) == all.end()) {
        fail("no random model has the architecture {}", model.architecture);
    }
    for (const Setting& setting : settings(model)) {
        if (setting.set && std::ranges::find(setting.architectures, model.architecture) ==
                               setting.architectures.end()) {
            fail("{} has no {}", model.architecture, setting.text);
        }
    }
    if (model.rope_scaling == "longrope" && model.architecture != "llama") {
        fail("{} has no longrope", model.architecture);
    }
    if (model.fused_qkv && model.v_from_k) fail("a fused projection has a V");
    check_one_per_layer(model, "n_head_kv_per_layer", model.n_head_kv_per_layer.size());
    check_one_per_layer(model, "n_ff_per_layer", model.n_ff_per_layer.size());
    check_one_per_layer(model, "window_layers", model.window_layers.size());
    check_one_per_layer(model, "recurrent_layers", model.recurrent_layers.size());
    check_heads(model);
    check_experts(model);
    check_windows(model);
    check_shared_kv(model);
    check_recurrent(model);
}

std::string describe(const RandomModel& model) {
    std::string text = model.architecture == "llama" ? "" : model.architecture + " ";
    text += fmt::format("{}L {} {}/{} ff{} v{}", model.n_layer, model.n_embd, model.n_head,
                        model.n_head_kv, model.n_ff, model.n_vocab);
    for (const Setting& setting : settings(model)) {
        if (setting.set) text += " " + setting.text;
    }
    return text + fmt::format(" seed {}", model.seed);
}

void PrintTo(const RandomModel& model, std::ostream* out) { *out << describe(model); }

}  // namespace pleat::test
