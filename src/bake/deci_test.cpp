#include "bake/deci.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "bake/bake.h"
#include "bake/tiny_llama_for_test.h"

namespace pleat {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class Deci : public testing::Test {
  protected:
    std::shared_ptr<Model> make(const TinyLlama& tiny = {}) {
        tiny.save(dir_.file("in.gguf"));
        return open_tiny(dir_.file("in.gguf"));
    }
    TempDir dir_;
};

constexpr PassForm whole{};
constexpr PassForm ffn_only{.without_attention = true};
constexpr PassForm nothing{.without_attention = true, .without_ffn = true};

TEST_F(Deci, LeavesOutAttentionExceptInTheFirstPass) {
    const auto model = make();
    std::vector<std::string> warnings;
    EXPECT_THAT(deci_forms(plan_of(*model, "layers:0,1[-attn],2,3[-attn]"), warnings),
                ElementsAre(whole, ffn_only, whole, ffn_only));
    EXPECT_THAT(warnings, IsEmpty());
    EXPECT_THAT(deci_forms(plan_of(*model, "drop:0..1"), warnings),
                ElementsAre(whole, ffn_only, whole, whole));
    EXPECT_THAT(
        warnings,
        ElementsAre("pass 0 (layer 0): attention is dropped by zeros, stock computes it all "
                    "the same: deci reads the head size from its first layer"));
}

TEST_F(Deci, LeavesOutAnFfnOnlyWithItsAttentionAndNotAtTheEnds) {
    const auto model = make();
    std::vector<std::string> warnings;
    EXPECT_THAT(
        deci_forms(plan_of(*model, "layers:3[-attn,-ffn],1[-attn,-ffn],2[-ffn],0[-attn,-ffn]"),
                   warnings),
        ElementsAre(whole, nothing, whole, ffn_only));
    EXPECT_THAT(
        warnings,
        ElementsAre("pass 0 (layer 3): attention is dropped by zeros, stock computes it all "
                    "the same: deci reads the head size from its first layer",
                    "pass 0 (layer 3): the FFN is dropped by zeros, stock computes it all "
                    "the same: it is the first layer, which keeps its shape",
                    "pass 2 (layer 2): the FFN is dropped by zeros, stock computes it all "
                    "the same: deci has no layer of an attention alone",
                    "pass 3 (layer 0): the FFN is dropped by zeros, stock computes it all "
                    "the same: deci's last layer needs an FFN"));
}

TEST_F(Deci, WritesNoTensorOfASubLayerThatIsLeftOut) {
    const auto model =
        make({.biases = true,
              .more_tensors = {TinyLlama::tensor("blk.1.attn_q.input_scale", GGML_TYPE_F32, {1})}});
    const std::string out = dir_.file("out.gguf");
    bake(*model, plan_of(*model, "layers:0,1[-attn],2[-attn,-ffn],3"), out,
         {.as = BakeFormat::deci});
    const auto baked = gguf::File::open(out);
    std::vector<std::string> names;
    for (const gguf::TensorInfo& info : baked.tensors()) {
        if (info.name.starts_with("blk.1.") || info.name.starts_with("blk.2.")) {
            names.push_back(info.name);
        }
    }
    EXPECT_THAT(names,
                ElementsAre("blk.1.ffn_norm.weight", "blk.1.ffn_gate.weight", "blk.1.ffn_gate.bias",
                            "blk.1.ffn_up.weight", "blk.1.ffn_up.bias", "blk.1.ffn_down.weight",
                            "blk.1.ffn_down.bias"));
    EXPECT_EQ(data_of(baked, "blk.1.ffn_down.weight"),
              data_of(model->file(), "blk.1.ffn_down.weight"));
}

TEST_F(Deci, RefusesWhatStocksDeciDoesNotCompute) {
    const auto error = [&](const TinyLlama& tiny, const Architecture& row) {
        tiny.save(dir_.file("in.gguf"));
        const auto model = open_tiny(dir_.file("in.gguf"), row);
        return message_of([&] { check_deci(*model, plan_of(*model, "skip:0")); });
    };
    EXPECT_EQ(error({.n_expert = 3}, llama_architecture()),
              "--as deci: the model has 3 experts; stock's deci has none");
    TinyLlama scaled{.more_tensors = {TinyLlama::tensor("blk.1.ffn_up.scale", GGML_TYPE_F32, {1})}};
    EXPECT_EQ(error(scaled, llama_architecture()),
              "--as deci: the model has blk.1.ffn_up.scale; stock's deci ignores the scales of an "
              "FFN");
    scaled.more_tensors = {TinyLlama::tensor("blk.0.ffn_up.scale", GGML_TYPE_F32, {1})};
    EXPECT_EQ(error(scaled, llama_architecture()), "no error");  // that layer is skipped
    Architecture other = llama_architecture();
    other.name = "qwen2";
    EXPECT_EQ(error({}, other),
              "--as deci: the model's architecture is qwen2; only llama can be written as deci");
}

}  // namespace
}  // namespace pleat
