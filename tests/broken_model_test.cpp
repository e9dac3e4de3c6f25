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
#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/random_model.h"
#include "support/temp_file.h"

// Files that are sound GGUF but no sound model: every one is refused by name, before ggml sees it.
namespace pleat::test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A file in pieces that a case can spoil.
struct Parts {
    std::vector<gguf::KeyValue> metadata;
    struct Tensor {
        std::string name;
        ggml_type type;
        std::vector<int64_t> ne;
        std::vector<std::byte> data;
    };
    std::vector<Tensor> tensors;

    gguf::Value& key(const std::string& name) {
        const auto at = std::ranges::find(metadata, name, &gguf::KeyValue::key);
        if (at != metadata.end()) return at->value;
        metadata.push_back({name, uint32_t{0}});
        return metadata.back().value;
    }
    void remove_key(const std::string& name) {
        std::erase_if(metadata, [&](const gguf::KeyValue& kv) { return kv.key == name; });
    }
    Tensor& tensor(const std::string& name) {
        const auto at = std::ranges::find(tensors, name, &Tensor::name);
        if (at == tensors.end()) throw std::logic_error(name);
        return *at;
    }
    void remove_tensor(const std::string& name) {
        std::erase_if(tensors, [&](const Tensor& t) { return t.name == name; });
    }
    void reshape(const std::string& name, std::vector<int64_t> ne, ggml_type type = GGML_TYPE_F32) {
        Tensor& t = tensor(name);
        t.ne = std::move(ne);
        t.type = type;
        int64_t rows = 1;
        for (size_t i = 1; i < t.ne.size(); ++i) rows *= t.ne[i];
        t.data.assign(ggml_row_size(type, t.ne[0]) * static_cast<size_t>(rows), std::byte{0});
    }
};

Parts read_parts(const std::string& path) {
    const gguf::File file = gguf::File::open(path);
    Parts parts{.metadata = file.metadata(), .tensors = {}};
    for (const gguf::TensorInfo& info : file.tensors()) {
        const auto data = file.data(info);
        parts.tensors.push_back({.name = info.name,
                                 .type = info.type,
                                 .ne = {info.ne.begin(), info.ne.begin() + info.n_dims},
                                 .data = {data.begin(), data.end()}});
    }
    return parts;
}

void write_parts(const Parts& parts, const std::string& path) {
    std::vector<gguf::TensorToWrite> tensors;
    for (const Parts::Tensor& t : parts.tensors) {
        tensors.push_back(
            {.name = t.name, .type = t.type, .ne = t.ne, .write = [&t](const auto& sink) {
                 sink(t.data);
             }});
    }
    gguf::write(path, parts.metadata, tensors);
}

struct Case {
    std::string name;
    RandomModel model;
    std::function<void(Parts&)> spoil;
    std::string message;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class BrokenModel : public testing::TestWithParam<Case> {};

TEST_P(BrokenModel, IsRefusedInOneLineThatNamesTheFileAndTheFault) {
    const Case& c = GetParam();
    Parts parts = read_parts(make_model(c.model).path());
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
            [key, value = std::move(value)](Parts& p) { p.key(key) = value; }, std::move(message)};
}

Case missing_key(std::string name, const std::string& key) {
    return {std::move(name), tiny, [key](Parts& p) { p.remove_key(key); },
            "key " + key + " is missing"};
}

Case missing_tensor(std::string name, const std::string& tensor) {
    return {std::move(name), tiny, [tensor](Parts& p) { p.remove_tensor(tensor); },
            "tensor " + tensor + " is missing"};
}

gguf::Array array_of(std::vector<uint32_t> values) {
    return {.type = gguf::ValueType::u32, .items = std::move(values)};
}

const float infinity = INFINITY;

const std::vector<Case> cases{
    key_case("unknown_architecture", "general.architecture", std::string("mamba"),
             "architecture \"mamba\" is not supported (key general.architecture); supported: "),
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
    missing_tensor("no_embedding", "token_embd.weight"),
    missing_tensor("no_output_norm", "output_norm.weight"),
    missing_tensor("no_attn_norm", "blk.1.attn_norm.weight"),
    missing_tensor("no_attn_q", "blk.0.attn_q.weight"),
    missing_tensor("no_attn_output", "blk.1.attn_output.weight"),
    missing_tensor("no_ffn_down", "blk.0.ffn_down.weight"),
    {"transposed_projection", tiny,
     [](Parts& p) {
         p.reshape("blk.1.ffn_down.weight", {32, 48});
     },
     "tensor blk.1.ffn_down.weight has shape [32, 48], expected [48, 32]"},
    {"norm_of_another_length", tiny, [](Parts& p) { p.reshape("blk.0.ffn_norm.weight", {31}); },
     "tensor blk.0.ffn_norm.weight has shape [31], expected [32]"},
    {"norm_in_f16", tiny,
     [](Parts& p) { p.reshape("blk.0.attn_norm.weight", {32}, GGML_TYPE_F16); },
     "tensor blk.0.attn_norm.weight has type f16, expected f32"},
    {"projection_of_integers", tiny,
     [](Parts& p) {
         p.reshape("blk.0.attn_k.weight", {32, 16}, GGML_TYPE_I32);
     },
     "tensor blk.0.attn_k.weight has type i32, expected f32, f16, bf16 or a quantised type"},
    {"rope_factors_of_another_length", tiny, [](Parts& p) { p.reshape("rope_freqs.weight", {3}); },
     "tensor rope_freqs.weight has shape [3], expected [4]"},
    {"a_third_dimension", tiny,
     [](Parts& p) {
         p.reshape("blk.0.attn_q.weight", {32, 32, 2});
     },
     "tensor blk.0.attn_q.weight has shape [32, 32, 2], expected [32, 32]"},
    {"unknown_tensor", tiny,
     [](Parts& p) {
         p.tensors.push_back(p.tensors.front());
         p.tensors.back().name = "blk.0.attn_gate.weight";
     },
     "tensor blk.0.attn_gate.weight has no place in a llama model"},
    {"bias_of_another_length", tiny,
     [](Parts& p) {
         p.tensors.push_back({"blk.0.attn_q.bias", GGML_TYPE_F32, {16}, {}});
         p.reshape("blk.0.attn_q.bias", {16});
     },
     "tensor blk.0.attn_q.bias has shape [16], expected [32]"},
    {"router_of_another_width", tiny_experts,
     [](Parts& p) {
         p.reshape("blk.0.ffn_gate_inp.weight", {32, 3});
     },
     "tensor blk.0.ffn_gate_inp.weight has shape [32, 3], expected [32, 4]"},
    {"no_experts_used", tiny_experts,
     [](Parts& p) { p.key("llama.expert_used_count") = uint32_t{0}; },
     "key llama.expert_used_count is 0, expected 1 to 4"},
    {"too_many_experts", tiny_experts,
     [](Parts& p) { p.key("llama.expert_count") = uint32_t{1000000}; },
     "key llama.expert_count is 1000000"},
    {"experts_missing", tiny_experts, [](Parts& p) { p.remove_tensor("blk.1.ffn_up_exps.weight"); },
     "tensor blk.1.ffn_up_exps.weight is missing"},
};

INSTANTIATE_TEST_SUITE_P(Cases, BrokenModel, testing::ValuesIn(cases),
                         [](const auto& param) { return param.param.name; });

TEST(SoundModel, IsTakenAfterTheRoundTripThatTheCasesMake) {
    const TempFile file(".gguf");
    write_parts(read_parts(make_model(tiny).path()), file.path());
    EXPECT_EQ(open_model(file.path())->shape(), open_model(make_model(tiny).path())->shape());
}

}  // namespace
}  // namespace pleat::test
