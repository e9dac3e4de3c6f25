#include "support/random_metadata.h"

#include <fmt/format.h>

#include "support/random_shape.h"
#include "support/random_vocab.h"

namespace pleat::test {
namespace {

/// Keys that begin with the architecture's name, except for `plain`.
class KeyList {
  public:
    explicit KeyList(std::string architecture) : architecture_(std::move(architecture)) {}

    void plain(const std::string& key, gguf::Value value) {
        list_.push_back({key, std::move(value)});
    }
    void add(const std::string& key, gguf::Value value) {
        plain(architecture_ + "." + key, std::move(value));
    }
    void number(const std::string& key, int value) { add(key, static_cast<uint32_t>(value)); }
    /// Nothing for 0.
    void number_if_set(const std::string& key, int value) {
        if (value != 0) number(key, value);
    }
    void real_if_set(const std::string& key, float value) {
        if (value != 0) add(key, value);
    }
    void number_or_array(const std::string& key, int one, const std::vector<int>& per_layer) {
        if (per_layer.empty()) {
            number(key, one);
        } else {
            add(key, gguf::Array{gguf::ValueType::i32,
                                 std::vector<int32_t>(per_layer.begin(), per_layer.end())});
        }
    }
    void flags_if_set(const std::string& key, const std::vector<bool>& flags) {
        if (flags.empty()) return;
        add(key, gguf::Array{gguf::ValueType::boolean,
                             std::vector<uint8_t>(flags.begin(), flags.end())});
    }
    std::vector<gguf::KeyValue> take() { return std::move(list_); }

  private:
    std::string architecture_;
    std::vector<gguf::KeyValue> list_;
};

void list_rope(KeyList& list, const RandomModel& model) {
    if (model.architecture == "llama") {
        list.number("rope.dimension_count", model.head_size());
    } else {
        list.number_if_set("rope.dimension_count", model.n_rot);
    }
    list.add("rope.freq_base", model.rope_freq_base);
    if (!model.rope_scaling.empty()) {
        list.add("rope.scaling.type", model.rope_scaling);
        list.add("rope.scaling.factor", model.rope_factor);
        list.number("rope.scaling.original_context_length", model.rope_orig_ctx);
    }
    list.real_if_set("rope.freq_base_swa", model.rope_freq_base_swa);
}

void list_experts(KeyList& list, const RandomModel& model) {
    if (model.n_expert == 0) return;
    list.number("expert_count", model.n_expert);
    list.number("expert_used_count", model.n_expert_used);
    if (model.architecture != "llama") list.number("expert_feed_forward_length", n_ff_exp(model));
    list.number_if_set("expert_shared_feed_forward_length", model.n_ff_shexp);
}

void list_gemma(KeyList& list, const RandomModel& model) {
    list.number_if_set("attention.sliding_window", model.n_swa);
    list.number_if_set("attention.sliding_window_pattern", model.window_pattern);
    list.flags_if_set("attention.sliding_window_pattern", model.window_layers);
    list.real_if_set("final_logit_softcapping", model.softcap);
}

void list_gemma4(KeyList& list, const RandomModel& model) {
    const int head_size_swa = model.head_dim_swa == 0 ? model.head_size() : model.head_dim_swa;
    list.number("attention.key_length_swa", head_size_swa);
    list.number("attention.value_length_swa", head_size_swa);
    list.number("rope.dimension_count_swa", head_size_swa);
    list.number("embedding_length_per_layer_input", model.n_embd_per_layer);
    list.number_if_set("attention.shared_kv_layers", model.n_shared_kv);
}

/// Time, height and width of a position turn about a third of the pairs each.
gguf::Array rope_sections(int n_rot) {
    const int32_t pairs = n_rot / 2;
    const int32_t first = (pairs + 2) / 3;
    const int32_t second = (pairs - first + 1) / 2;
    return {gguf::ValueType::i32, std::vector<int32_t>{first, second, pairs - first - second, 0}};
}

void list_qwen35(KeyList& list, const RandomModel& model) {
    list.add("rope.dimension_sections",
             rope_sections(model.n_rot == 0 ? model.head_size() : model.n_rot));
    list.number("ssm.conv_kernel", model.ssm_conv_kernel);
    list.number("ssm.state_size", model.ssm_state_size);
    list.number("ssm.group_count", model.ssm_n_group);
    list.number("ssm.time_step_rank", model.ssm_n_head);
    list.number("ssm.inner_size", model.ssm_state_size * model.ssm_n_head);
    list.number_if_set("full_attention_interval", model.full_attention_interval);
    std::vector<bool> recurrent = model.recurrent_layers;
    if (!recurrent.empty() && model.mtp) recurrent.push_back(false);
    list.flags_if_set("attention.recurrent_layers", recurrent);
    list.number_if_set("nextn_predict_layers", model.mtp ? 1 : 0);
}

}  // namespace

std::vector<gguf::KeyValue> list_metadata(const RandomModel& model) {
    KeyList list(model.architecture);
    list.plain("general.architecture", model.architecture);
    list.plain("general.name", fmt::format("random {}", describe(model)));
    if (model.alignment != 32) list.plain("general.alignment", model.alignment);
    list.number("vocab_size", model.n_vocab);
    list.number("context_length", model.n_ctx_train);
    list.number("embedding_length", model.n_embd);
    list.number("block_count", n_block(model));
    list.number_or_array("feed_forward_length", model.n_ff, model.n_ff_per_layer);
    list.number("attention.head_count", model.n_head);
    list.number_or_array("attention.head_count_kv", model.n_head_kv, model.n_head_kv_per_layer);
    list.add("attention.layer_norm_rms_epsilon", 1e-5F);
    if (model.head_dim != 0 || model.architecture == "gemma4") {
        list.number("attention.key_length", model.head_size());
        list.number("attention.value_length", model.head_size());
    }
    list_rope(list, model);
    list_experts(list, model);
    if (is_gemma(model)) list_gemma(list, model);
    if (model.architecture == "gemma4") list_gemma4(list, model);
    if (is_qwen35(model)) list_qwen35(list, model);
    std::vector<gguf::KeyValue> keys = list.take();
    if (model.tokenizer) {
        for (gguf::KeyValue& entry : random_vocab(model.n_vocab)) keys.push_back(std::move(entry));
    } else {
        keys.push_back({"tokenizer.ggml.model", std::string("none")});
    }
    keys.insert(keys.end(), model.metadata.begin(), model.metadata.end());
    return keys;
}

}  // namespace pleat::test
