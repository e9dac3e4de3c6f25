#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "support/model_parts.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/temp_file.h"

// Files that are sound GGUF but no sound model: every one is refused by name, before ggml sees it.
namespace pleat::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

struct Case {
    std::string name;
    RandomModel model;
    std::function<void(ModelParts&)> spoil;
    std::string message;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BrokenModel : public testing::TestWithParam<Case> {};

TEST_P(BrokenModel, IsRefusedInOneLineThatNamesTheFileAndTheFault) {
    const Case& c = GetParam();
    ModelParts parts = read_parts(make_model(c.model).path());
    c.spoil(parts);
    const TempFile file(".gguf");
    write_parts(parts, file.path());
    try {
        open_model(file.path());
        FAIL() << "the file was taken";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), StartsWith(file.path() + ": "));
        EXPECT_THAT(error.what(), HasSubstr(c.message));
        EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
    }
}

const RandomModel tiny{.n_layer = 2,
                       .n_embd = 32,
                       .n_head = 4,
                       .n_head_kv = 2,
                       .n_ff = 48,
                       .n_vocab = 64,
                       .rope_freqs = true};
const RandomModel tiny_experts{.n_layer = 2,
                               .n_embd = 32,
                               .n_head = 4,
                               .n_head_kv = 2,
                               .n_ff = 48,
                               .n_vocab = 64,
                               .n_expert = 4,
                               .n_expert_used = 2};

/// A case that sets one key.
Case key_case(std::string name, const std::string& key, gguf::Value value, std::string message) {
    return {std::move(name), tiny,
            [key, value = std::move(value)](ModelParts& p) { p.key(key) = value; },
            std::move(message)};
}

Case missing_key(std::string name, const std::string& key) {
    return {std::move(name), tiny, [key](ModelParts& p) { p.remove_key(key); },
            "key " + key + " is missing"};
}

Case missing_tensor(std::string name, const std::string& tensor) {
    return {std::move(name), tiny, [tensor](ModelParts& p) { p.remove_tensor(tensor); },
            "tensor " + tensor + " is missing"};
}

gguf::Array array_of(std::vector<uint32_t> values) {
    return {.type = gguf::ValueType::u32, .items = std::move(values)};
}

const float infinity = INFINITY;

const std::vector<Case> cases{
    key_case(
        "unknown_architecture", "general.architecture", std::string("mamba"),
        "architecture \"mamba\" is not supported (key general.architecture); supported: llama, "
        "qwen2, qwen3, qwen3moe, gemma3, qwen35, qwen35moe, gemma4"),
    key_case("architecture_of_another_type", "general.architecture", uint32_t{1},
             "key general.architecture has type u32"),
    missing_key("no_architecture", "general.architecture"),
    missing_key("no_block_count", "llama.block_count"),
    missing_key("no_embedding_length", "llama.embedding_length"),
    missing_key("no_context_length", "llama.context_length"),
    missing_key("no_epsilon", "llama.attention.layer_norm_rms_epsilon"),
    missing_key("no_head_count", "llama.attention.head_count"),
    missing_key("no_ffn_length", "llama.feed_forward_length"),
    key_case("zero_layers", "llama.block_count", uint32_t{0},
             "key llama.block_count is 0, expected 1 to 512"),
    key_case("too_many_layers", "llama.block_count", uint32_t{4000000000},
             "key llama.block_count is 4000000000, expected 1 to 512"),
    key_case("one_layer_too_many", "llama.block_count", uint32_t{3},
             "tensor blk.2.attn_norm.weight is missing"),
    key_case("one_layer_too_few", "llama.block_count", uint32_t{1},
             "has no place in a llama model with these keys (1 layers)"),
    key_case("zero_embedding", "llama.embedding_length", uint32_t{0},
             "key llama.embedding_length is 0"),
    key_case("huge_embedding", "llama.embedding_length", uint32_t{4294967295},
             "key llama.embedding_length is 4294967295"),
    key_case("other_embedding", "llama.embedding_length", uint32_t{64},
             "key llama.rope.dimension_count is 8, expected 16 (the head size)"),
    key_case("zero_context", "llama.context_length", uint32_t{0}, "key llama.context_length is 0"),
    key_case("zero_heads", "llama.attention.head_count", uint32_t{0},
             "key llama.attention.head_count is 0"),
    key_case("zero_kv_heads", "llama.attention.head_count_kv", uint32_t{0},
             "key llama.attention.head_count_kv is 0"),
    key_case("kv_heads_that_do_not_divide", "llama.attention.head_count_kv", uint32_t{3},
             "key llama.attention.head_count_kv is 3 in layer 0, expected a divisor of the head "
             "count 4"),
    key_case("more_heads_than_width", "llama.attention.head_count", uint32_t{64},
             "key llama.attention.head_count"),
    key_case("other_head_count", "llama.attention.head_count", uint32_t{8},
             "key llama.rope.dimension_count"),
    key_case("too_few_head_counts", "llama.attention.head_count", array_of({4}),
             "llama.attention.head_count"),
    key_case("too_many_head_counts", "llama.attention.head_count", array_of({4, 4, 4}),
             "llama.attention.head_count"),
    key_case("too_few_ffn_lengths", "llama.feed_forward_length", array_of({48}),
             "llama.feed_forward_length"),
    key_case("zero_in_an_array", "llama.feed_forward_length", array_of({48, 0}),
             "key llama.feed_forward_length is 0"),
    key_case("other_ffn_length", "llama.feed_forward_length", uint32_t{64},
             "tensor blk.0.ffn_gate.weight has shape [32, 48], expected [32, 64]"),
    key_case("epsilon_zero", "llama.attention.layer_norm_rms_epsilon", 0.0F,
             "key llama.attention.layer_norm_rms_epsilon is 0"),
    key_case("epsilon_not_finite", "llama.attention.layer_norm_rms_epsilon", infinity,
             "key llama.attention.layer_norm_rms_epsilon is inf"),
    key_case("epsilon_not_a_number", "llama.attention.layer_norm_rms_epsilon", std::nanf(""),
             "key llama.attention.layer_norm_rms_epsilon is nan"),
    key_case("epsilon_as_text", "llama.attention.layer_norm_rms_epsilon", std::string("1e-5"),
             "key llama.attention.layer_norm_rms_epsilon has type"),
    key_case("not_causal", "llama.attention.causal", false, "key llama.attention.causal is false"),
    key_case("odd_rotation", "llama.rope.dimension_count", uint32_t{7},
             "key llama.rope.dimension_count is 7"),
    key_case("partial_rotation", "llama.rope.dimension_count", uint32_t{4},
             "key llama.rope.dimension_count is 4, expected 8 (the head size)"),
    key_case("unknown_rope_scaling", "llama.rope.scaling.type", std::string("dynamic"),
             "key llama.rope.scaling.type is \"dynamic\", expected none, linear, yarn or longrope"),
    key_case("longrope_without_factors", "llama.rope.scaling.type", std::string("longrope"),
             "tensor rope_factors_long.weight is missing"),
    key_case("negative_rope_factor", "llama.rope.scaling.factor", -2.0F,
             "key llama.rope.scaling.factor is -2"),
    key_case("rope_base_zero", "llama.rope.freq_base", 0.0F, "key llama.rope.freq_base is 0"),
    key_case("more_experts_used_than_there_are", "llama.expert_used_count", uint32_t{2},
             "key llama.expert_used_count is 2, expected 0 to 0"),
    key_case("only_mtp_layers", "llama.nextn_predict_layers", uint32_t{2},
             "key llama.nextn_predict_layers is 2"),
    key_case("layers_for_drafts", "llama.nextn_predict_layers", uint32_t{1},
             "key llama.nextn_predict_layers is 1, expected 0: this architecture has no such"),
    {"projection_in_a_type_of_activations", tiny,
     [](ModelParts& p) {
         p.reshape("blk.0.attn_k.weight", {32, 16}, GGML_TYPE_Q8_1);
     },
     "tensor blk.0.attn_k.weight has type q8_1, expected f32, f16, bf16 or a quantised type of "
     "weights"},
    missing_tensor("no_embedding", "token_embd.weight"),
    missing_tensor("no_output_norm", "output_norm.weight"),
    missing_tensor("no_attn_norm", "blk.1.attn_norm.weight"),
    missing_tensor("no_attn_q", "blk.0.attn_q.weight"),
    missing_tensor("no_attn_output", "blk.1.attn_output.weight"),
    missing_tensor("no_ffn_down", "blk.0.ffn_down.weight"),
    {"transposed_projection", tiny,
     [](ModelParts& p) {
         p.reshape("blk.1.ffn_down.weight", {32, 48});
     },
     "tensor blk.1.ffn_down.weight has shape [32, 48], expected [48, 32]"},
    {"norm_of_another_length", tiny,
     [](ModelParts& p) { p.reshape("blk.0.ffn_norm.weight", {31}); },
     "tensor blk.0.ffn_norm.weight has shape [31], expected [32]"},
    {"norm_in_f16", tiny,
     [](ModelParts& p) { p.reshape("blk.0.attn_norm.weight", {32}, GGML_TYPE_F16); },
     "tensor blk.0.attn_norm.weight has type f16, expected f32"},
    {"projection_of_integers", tiny,
     [](ModelParts& p) {
         p.reshape("blk.0.attn_k.weight", {32, 16}, GGML_TYPE_I32);
     },
     "tensor blk.0.attn_k.weight has type i32, expected f32, f16, bf16 or a quantised type"},
    {"rope_factors_of_another_length", tiny,
     [](ModelParts& p) { p.reshape("rope_freqs.weight", {3}); },
     "tensor rope_freqs.weight has shape [3], expected [4]"},
    {"a_third_dimension", tiny,
     [](ModelParts& p) {
         p.reshape("blk.0.attn_q.weight", {32, 32, 2});
     },
     "tensor blk.0.attn_q.weight has shape [32, 32, 2], expected [32, 32]"},
    {"unknown_tensor", tiny,
     [](ModelParts& p) {
         p.tensors.push_back(p.tensors.front());
         p.tensors.back().name = "blk.0.attn_gate.weight";
     },
     "tensor blk.0.attn_gate.weight has no place in a llama model"},
    {"bias_of_another_length", tiny,
     [](ModelParts& p) {
         p.tensors.push_back({"blk.0.attn_q.bias", GGML_TYPE_F32, {16}, {}});
         p.reshape("blk.0.attn_q.bias", {16});
     },
     "tensor blk.0.attn_q.bias has shape [16], expected [32]"},
    {"router_of_another_width", tiny_experts,
     [](ModelParts& p) {
         p.reshape("blk.0.ffn_gate_inp.weight", {32, 3});
     },
     "tensor blk.0.ffn_gate_inp.weight has shape [32, 3], expected [32, 4]"},
    {"no_experts_used", tiny_experts,
     [](ModelParts& p) { p.key("llama.expert_used_count") = uint32_t{0}; },
     "key llama.expert_used_count is 0, expected 1 to 4"},
    {"too_many_experts", tiny_experts,
     [](ModelParts& p) { p.key("llama.expert_count") = uint32_t{1000000}; },
     "key llama.expert_count is 1000000"},
    {"experts_missing", tiny_experts,
     [](ModelParts& p) { p.remove_tensor("blk.1.ffn_up_exps.weight"); },
     "tensor blk.1.ffn_up_exps.weight is missing"},
};

RandomModel named(const std::string& name) {
    const auto at = std::ranges::find(architecture_models(), name, &NamedModel::name);
    if (at == architecture_models().end()) throw std::logic_error(name);
    return at->model;
}

/// A case that sets one key of the architecture's.
Case arch_case(std::string name, const std::string& model, const std::string& key,
               gguf::Value value, std::string message) {
    const RandomModel m = named(model);
    return {std::move(name), m,
            [key = m.architecture + "." + key, value = std::move(value)](ModelParts& p) {
                p.key(key) = value;
            },
            std::move(message)};
}

gguf::Array sections(std::vector<int32_t> values) {
    return {.type = gguf::ValueType::i32, .items = std::move(values)};
}

gguf::Array flags(std::vector<uint8_t> values) {
    return {.type = gguf::ValueType::boolean, .items = std::move(values)};
}

const std::vector<Case> cases_of_architectures{
    arch_case("qwen2_with_drafts", "qwen2", "nextn_predict_layers", uint32_t{1},
              "key qwen2.nextn_predict_layers is 1, expected 0: this architecture has no such"),
    arch_case("qwen3moe_with_drafts", "qwen3moe", "nextn_predict_layers", uint32_t{1},
              "key qwen3moe.nextn_predict_layers is 1, expected 0"),
    arch_case("gemma4_with_drafts", "gemma4", "nextn_predict_layers", uint32_t{1},
              "key gemma4.nextn_predict_layers is 1, expected 0"),
    arch_case("qwen35_more_drafts", "qwen35", "nextn_predict_layers", uint32_t{8},
              "key qwen35.nextn_predict_layers is 8, expected 0 to 7"),
    arch_case("qwen2_partial_rotation", "qwen2", "rope.dimension_count", uint32_t{16},
              "key qwen2.rope.dimension_count is 16, expected 32 (the head size)"),
    arch_case("qwen3_odd_head", "qwen3", "attention.key_length", uint32_t{63},
              "key qwen3.attention.key_length is 63, expected an even number"),
    arch_case("qwen3_odd_head_of_no_key", "qwen3_odd_tied", "embedding_length", uint32_t{186},
              "heads have 31 values (embedding_length / attention.head_count), expected an even "
              "number, or key qwen3.attention.key_length"),
    arch_case("yarn_factor_without_inverse", "qwen2_yarn", "rope.scaling.factor", 1e-45F,
              "key qwen2.rope.scaling.factor is 1e-45, expected a number whose inverse"),
    arch_case("qwen3moe_no_experts", "qwen3moe", "expert_count", uint32_t{0},
              "key qwen3moe.expert_used_count is 3, expected 0 to 0"),
    arch_case("qwen3moe_expert_width", "qwen3moe", "expert_feed_forward_length", uint32_t{65},
              "tensor blk.0.ffn_gate_exps.weight has shape [128, 64, 8], expected [128, 65, 8]"),
    arch_case("gemma3_window_as_text", "gemma3", "attention.sliding_window", std::string("16"),
              "key gemma3.attention.sliding_window has type string"),
    arch_case("gemma3_window_too_large", "gemma3", "attention.sliding_window", uint32_t{0x80000000},
              "key gemma3.attention.sliding_window is 2147483648, expected 0 to 1073741824"),
    arch_case("gemma3_short_pattern", "gemma3", "attention.sliding_window_pattern", flags({1, 0}),
              "key gemma3.attention.sliding_window_pattern has 2 entries, expected 12"),
    arch_case("gemma3_negative_cap", "gemma3", "final_logit_softcapping", -1.0F,
              "key gemma3.final_logit_softcapping is -1, expected 0 (off) or more"),
    arch_case("gemma3_cap_not_a_number", "gemma3", "final_logit_softcapping", std::nanf(""),
              "key gemma3.final_logit_softcapping is nan"),
    arch_case("gemma3_cap_without_inverse", "gemma3", "final_logit_softcapping", 1e-45F,
              "key gemma3.final_logit_softcapping is 1e-45, expected 0 (off) or a number whose"),
    arch_case("gemma4_no_window", "gemma4", "attention.sliding_window", uint32_t{0},
              "key gemma4.attention.sliding_window is 0, expected 1 to"),
    arch_case("gemma4_pattern_number", "gemma4", "attention.sliding_window_pattern", uint32_t{3},
              "key gemma4.attention.sliding_window_pattern is one value, expected an array of 6"),
    arch_case("gemma4_value_length", "gemma4", "attention.value_length", uint32_t{32},
              "key gemma4.attention.value_length is 32, expected 64, the key length"),
    arch_case("gemma4_odd_window_head", "gemma4", "attention.key_length_swa", uint32_t{31},
              "key gemma4.attention.key_length_swa is 31, expected an even number"),
    arch_case("gemma4_all_shared", "gemma4_shared_kv", "attention.shared_kv_layers", uint32_t{6},
              "key gemma4.attention.shared_kv_layers is 6, so layer 0 would read the K/V of layer "
              "-2, which does not exist"),
    arch_case("gemma4_more_shared_than_layers", "gemma4_shared_kv", "attention.shared_kv_layers",
              uint32_t{7}, "key gemma4.attention.shared_kv_layers is 7, expected 0 to 6"),
    arch_case("gemma4_owner_of_another_kind", "gemma4_shared_kv", "attention.shared_kv_layers",
              uint32_t{2}, "so layer 4 would read the K/V of layer 2, which has another kind of"),
    arch_case("gemma4_owner_with_other_heads", "gemma4_kv_heads_v_from_k",
              "attention.shared_kv_layers", uint32_t{1}, "key gemma4.attention.shared_kv_layers"),
    arch_case("gemma4_layer_embedding", "gemma4_shared_kv", "embedding_length_per_layer_input",
              uint32_t{16},
              "tensor per_layer_token_embd.weight has shape [192, 384], expected [96, 384]"),
    arch_case("gemma4_no_layer_embedding", "gemma4_shared_kv", "embedding_length_per_layer_input",
              uint32_t{0}, "tensor per_layer_token_embd.weight has no place"),
    arch_case("qwen35_three_sections", "qwen35", "rope.dimension_sections", sections({4, 2, 2}),
              "key qwen35.rope.dimension_sections is an array of 3, expected an array of 4"),
    arch_case("qwen35_empty_sections", "qwen35", "rope.dimension_sections", sections({0, 0, 0, 0}),
              "key qwen35.rope.dimension_sections is 0 in its first three places"),
    arch_case("qwen35_only_a_fourth_section", "qwen35", "rope.dimension_sections",
              sections({0, 0, 0, 8}),
              "key qwen35.rope.dimension_sections is 0 in its first three places, expected at "
              "least one rotated pair there"),
    arch_case(
        "qwen35_sections_beyond_the_head", "qwen35", "rope.dimension_sections",
        sections({40, 20, 5, 0}),
        "key qwen35.rope.dimension_sections is 65 in all, expected at most the head size, 64"),
    arch_case("qwen35_negative_section", "qwen35", "rope.dimension_sections",
              sections({-1, 2, 2, 2}), "key qwen35.rope.dimension_sections is -1 at place 0"),
    arch_case("qwen35_inner_size", "qwen35", "ssm.inner_size", uint32_t{100},
              "key qwen35.ssm.inner_size is 100, expected 128 (state_size x time_step_rank)"),
    arch_case("qwen35_value_heads", "qwen35", "ssm.time_step_rank", uint32_t{6},
              "key qwen35.ssm.time_step_rank is 6, expected a multiple of ssm.group_count, 4"),
    arch_case("qwen35_no_conv", "qwen35", "ssm.conv_kernel", uint32_t{1},
              "key qwen35.ssm.conv_kernel is 1, expected 2 to 256"),
    arch_case("qwen35_interval_zero", "qwen35", "full_attention_interval", uint32_t{0},
              "key qwen35.full_attention_interval is 0"),
    arch_case("qwen35_other_kinds", "qwen35", "full_attention_interval", uint32_t{3},
              "layer 2 is an attention layer by key qwen35.full_attention_interval, but the file "
              "has tensor blk.2.ssm_a, which belongs to a recurrent one"),
    arch_case("qwen35_other_kinds_by_array", "qwen35", "attention.recurrent_layers",
              flags({1, 1, 1, 1, 1, 1, 1, 0}),
              "layer 3 is recurrent by key qwen35.attention.recurrent_layers, but the file has "
              "tensor blk.3.attn_q_norm.weight, which belongs to an attention layer"),
    arch_case("qwen35_gate_of_another_width", "qwen35", "attention.value_length", uint32_t{32},
              "key qwen35.attention.value_length is 32, expected 64 (attention.key_length)"),
    arch_case("qwen35moe_shared_width", "qwen35moe_merged", "expert_shared_feed_forward_length",
              uint32_t{64},
              "tensor blk.0.ffn_gate_shexp.weight has shape [128, 96], expected [128, 64]"),
};

INSTANTIATE_TEST_SUITE_P(Architectures, BrokenModel, testing::ValuesIn(cases_of_architectures),
                         [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(Cases, BrokenModel, testing::ValuesIn(cases),
                         [](const auto& param) { return param.param.name; });

std::string error_of(const ModelParts& parts) {
    const TempFile file(".gguf");
    write_parts(parts, file.path());
    try {
        open_model(file.path());
    } catch (const Error& error) {
        return error.what();
    }
    return "taken";
}

/// Models that between them have every kind of layer.
const std::vector<std::string> models_of_every_layer{"qwen2", "gemma3", "gemma4_shared_kv",
                                                     "gemma4_experts", "qwen35moe_merged"};

class EveryTensor : public testing::TestWithParam<std::string> {
  protected:
    /// The first layer and the last are of the kinds there are.
    std::vector<std::string> names() const {
        const RandomModel model = named(GetParam());
        std::vector<std::string> names;
        for (const ModelParts::Tensor& t : sound_.tensors) {
            const bool first = t.name.starts_with("blk.0.");
            const bool last = t.name.starts_with("blk." + std::to_string(model.n_layer - 1) + ".");
            if (first || last || !t.name.starts_with("blk.")) names.push_back(t.name);
        }
        return names;
    }

    ModelParts sound_ = read_parts(make_model(named(GetParam())).path());
};

TEST_P(EveryTensor, IsRefusedByNameInAnotherShapeOrType) {
    for (const std::string& name : names()) {
        if (name == "token_embd.weight") continue;  // its rows are the vocabulary
        ModelParts parts = sound_;
        std::vector<int64_t> ne = parts.tensor(name).ne;
        parts.reshape(name, ne, GGML_TYPE_I32);
        EXPECT_THAT(error_of(parts), HasSubstr("tensor " + name + " has type i32, expected f32"));
        ++ne.back();
        parts.reshape(name, ne);
        EXPECT_THAT(error_of(parts), HasSubstr("tensor " + name + " has shape ["));
    }
}

TEST_P(EveryTensor, IsMissedByNameUnlessTheModelIsAnotherWithoutIt) {
    for (const std::string& name : names()) {
        ModelParts parts = sound_;
        parts.remove_tensor(name);
        const bool optional = name.ends_with(".bias") || name == "output.weight" ||
                              (name.ends_with(".scale") && !name.ends_with("gate_inp.scale")) ||
                              name.ends_with("layer_output_scale.weight") ||
                              (name.ends_with("attn_v.weight") && GetParam().starts_with("gemma4"));
        const std::string error = error_of(parts);
        if (optional && error == "taken") continue;
        EXPECT_THAT(error, testing::AnyOf(HasSubstr("is missing"), HasSubstr("has no place")))
            << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Architectures, EveryTensor, testing::ValuesIn(models_of_every_layer),
                         [](const auto& param) { return param.param; });

TEST(SoundModel, IsTakenAfterTheRoundTripThatTheCasesMake) {
    const TempFile file(".gguf");
    write_parts(read_parts(make_model(tiny).path()), file.path());
    EXPECT_EQ(open_model(file.path())->shape(), open_model(make_model(tiny).path())->shape());
}

}  // namespace
}  // namespace pleat::test
