#include "plan/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

std::string error(const std::string& spec, const ModelShape& shape) {
    return error_of([&] { resolve(spec, shape); });
}

std::string flags_error(const PlanFlags& flags, const ModelShape& shape) {
    return error_of([&] { LayerPlan::resolve(parse_flags(flags), shape); });
}

TEST(BlockRule, EndsWithinTheModel) {
    EXPECT_EQ(flags_error({.repeat_layers = {"10,14;60,65"}}, llama_shape()),
              "--repeat-layers \"10,14;60,65\": block 60,65 (character 7) ends after the last "
              "layer; this model has 64 layers, so 0 <= i < j <= 64");
    EXPECT_EQ(flags_error({.repeat_layers = {"10,14", "60,65x3"}}, llama_shape()),
              "--repeat-layers \"10,14;60,65x3\": block 60,65x3 (character 7) ends after the last "
              "layer; this model has 64 layers, so 0 <= i < j <= 64");
    EXPECT_EQ(flags_error({.repeat_layers = {"14,10"}}, llama_shape()),
              "--repeat-layers \"14,10\": block 14,10 (character 1) ends before it starts; this "
              "model has 64 layers, so 0 <= i < j <= 64");
    EXPECT_EQ(
        flags_error({.repeat_layers = {"10,10x1"}}, llama_shape()),
        "--repeat-layers \"10,10x1\": block 10,10x1 (character 1) is empty; this model has 64 "
        "layers, so 0 <= i < j <= 64");
    EXPECT_EQ(flags_error({.repeat_layers = {"1,2;0,0"}}, llama_shape()),
              "--repeat-layers \"1,2;0,0\": block 0,0 (character 5) is empty; this model has 64 "
              "layers, so 0 <= i < j <= 64");
}

TEST(BlockRule, DoesNotCountMtpLayers) {
    EXPECT_EQ(error("48,50", llama_shape({.n_layer = 48, .n_layer_nextn = 2})),
              "--spec \"48,50\": block 48,50 (character 1) ends after the last layer; this model "
              "has 48 layers (its 2 MTP layers do not count), so 0 <= i < j <= 48");
    EXPECT_EQ(error("skip:48", llama_shape({.n_layer = 48, .n_layer_nextn = 1})),
              "--spec \"skip:48\": layer 48 (character 6) is not in the model; this model has 48 "
              "layers (its 1 MTP layer does not count), so layers are 0 to 47");
}

TEST(BlockRule, DoesNotEndWithASkippedLayer) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    EXPECT_EQ(error("2,6+skip:4..5", shape),
              "--spec \"2,6+skip:4..5\": block 2,6 (character 1) ends with layer 5, which is "
              "skipped; a block goes right after its last layer, so write 2,4");
    EXPECT_EQ(error("4,6x1+skip:4..5", shape),
              "--spec \"4,6x1+skip:4..5\": block 4,6x1 (character 1) ends with layer 5, which is "
              "skipped; a block goes right after its last layer, so layers 4 to 5 are all skipped");
}

TEST(LengthRule, IsCheckedBeforeAnythingIsAllocated) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    EXPECT_EQ(resolve("0,8x8", shape).size(), 64U);
    EXPECT_EQ(error("0,8x9", shape),
              "--spec \"0,8x9\": block 0,8x9 (character 1) makes the path longer than 64 passes; a "
              "path has at most 8 x n_layer, this model has 8 layers");
    EXPECT_EQ(error("1,2x1000000000", shape),
              "--spec \"1,2x1000000000\": block 1,2x1000000000 (character 1) makes the path longer "
              "than 64 passes; a path has at most 8 x n_layer, this model has 8 layers");
    EXPECT_EQ(
        error("0,8x9223372036854775806", shape),
        "--spec \"0,8x9223372036854775806\": block 0,8x9223372036854775806 (character 1) "
        "makes the path longer than 64 passes; a path has at most 8 x n_layer, this model has "
        "8 layers");
    EXPECT_EQ(error("layers:..,..,..,..,..,..,..,..,7", shape),
              "--spec \"layers:..,..,..,..,..,..,..,..,7\": item 7 (character 32) makes the path "
              "longer than 64 passes; a path has at most 8 x n_layer, this model has 8 layers");
}

TEST(LayerRule, ItemsNameLayersOfTheModel) {
    EXPECT_EQ(flags_error({.skip_layers = {"3,70"}}, llama_shape()),
              "--skip-layers \"3,70\": layer 70 (character 3) is not in the model; this model has "
              "64 layers, so layers are 0 to 63");
    EXPECT_EQ(flags_error({.layers = {"0..64"}}, llama_shape()),
              "--layers \"0..64\": layer 64 of 0..64 (character 1) is not in the model; this model "
              "has 64 layers, so layers are 0 to 63");
    EXPECT_EQ(flags_error({.drop_attention = {"9223372036854775806.."}}, llama_shape()),
              "--drop-attention \"9223372036854775806..\": layer 9223372036854775806 of "
              "9223372036854775806.. (character 1) is not in the model; this model has 64 layers, "
              "so layers are 0 to 63");
    EXPECT_EQ(error("skip:1", llama_shape({.n_layer = 1})),
              "--spec \"skip:1\": layer 1 (character 6) is not in the model; this model has 1 "
              "layer, so layers are 0 to 0");
}

TEST(PathRule, IsNotEmpty) {
    EXPECT_EQ(error("skip:0,1..", llama_shape({.n_layer = 4})),
              "--spec \"skip:0,1..\": item 1.. (character 8) leaves the path empty; this model has "
              "4 layers, and at least one must be run");
    EXPECT_EQ(error_of([] {
                  LayerPlan::resolve(Spec{.layers = std::vector<LayerItem>()}, llama_shape());
              }),
              "the path is empty; at least one layer must be run");
}

TEST(PathRule, HasNoSecondSourceOfRepeats) {
    Spec spec = parse_spec("layers:0..3");
    spec.skip.push_back({.first = 1, .last = 1});
    EXPECT_EQ(error_of([&] { LayerPlan::resolve(spec, llama_shape()); }),
              "an explicit path of layers cannot be combined with repeats or skips");
}

TEST(DropRule, TheLayerIsInThePath) {
    const ModelShape shape = llama_shape({.n_layer = 8});
    EXPECT_EQ(flags_error({.skip_layers = {"4"}, .drop_attention = {"1,3..5"}}, shape),
              "--drop-attention \"1,3..5\": layer 4 of 3..5 (character 3) is not in the path; the "
              "layers that are run are 0..3,5..7");
    EXPECT_EQ(error("layers:3..1,2+drop-ffn:7", shape),
              "--spec \"layers:3..1,2+drop-ffn:7\": layer 7 (character 24) is not in the path; the "
              "layers that are run are 1..3");
}

TEST(DropRule, ARecurrentLayerKeepsItsAttention) {
    EXPECT_EQ(flags_error({.drop_attention = {"3,4"}}, hybrid_shape()),
              "--drop-attention \"3,4\": layer 4 (character 3) is recurrent and cannot lose its "
              "attention; the layers of this model that can are 3,7,11,15");
    EXPECT_EQ(flags_error({.layers = {"0..15,3..4[-attn]"}}, hybrid_shape()),
              "--layers \"0..15,3..4[-attn]\": layer 4 of 3..4[-attn] (character 7) is recurrent "
              "and cannot lose its attention; the layers of this model that can are 3,7,11,15");
    ModelShape shape = llama_shape({.n_layer = 2});
    for (LayerShape& layer : shape.layers) layer.role = Role::recurrent;
    EXPECT_EQ(
        error("drop:0", shape),
        "--spec \"drop:0\": layer 0 (character 6) is recurrent and cannot lose its attention; "
        "no layer of this model can");
    EXPECT_EQ(error("drop-ffn:0..1", hybrid_shape()), "no error");
}

TEST(HybridRule, OneAttentionLayerStays) {
    const ModelShape shape = hybrid_shape();
    EXPECT_EQ(error("drop:3,7,11", shape), "no error");
    EXPECT_EQ(error("drop:15,3,7,11", shape),
              "--spec \"drop:15,3,7,11\": layer 11 (character 13) is the last attention layer that "
              "was left; a hybrid model keeps at least one of its attention layers 3,7,11,15");
    EXPECT_EQ(error("skip:3,7+drop:11,15", shape),
              "--spec \"skip:3,7+drop:11,15\": layer 15 (character 18) is the last attention layer "
              "that was left; a hybrid model keeps at least one of its attention layers 3,7,11,15");
    EXPECT_EQ(error("skip:3..", shape),
              "--spec \"skip:3..\": layer 15 of 3.. (character 6) is the last attention layer that "
              "was left; a hybrid model keeps at least one of its attention layers 3,7,11,15");
    EXPECT_EQ(
        error("layers:0..2,3[-attn],4..6", shape),
        "--spec \"layers:0..2,3[-attn],4..6\": layer 3 of 3[-attn] (character 13) is the last "
        "attention layer that was left; a hybrid model keeps at least one of its attention "
        "layers 3,7,11,15");
    EXPECT_EQ(error("layers:0..2", shape),
              "--spec \"layers:0..2\": item 0..2 (character 8) ends a path without attention "
              "layers; a hybrid model keeps at least one of its attention layers 3,7,11,15");
    EXPECT_EQ(error("layers:0..2+drop-ffn:1", shape),
              "--spec \"layers:0..2+drop-ffn:1\": item 0..2 (character 8) ends a path without "
              "attention layers; a hybrid model keeps at least one of its attention layers "
              "3,7,11,15");
    EXPECT_EQ(error("drop:..", llama_shape()), "no error");
}

TEST(SharedKvRule, AnOwnerIsNotTakenFromItsConsumers) {
    const ModelShape shape = shared_shape();  // 4 and 6 read 2; 5 and 7 read 3
    EXPECT_EQ(flags_error({.drop_attention = {"1,2"}}, shape),
              "--drop-attention \"1,2\": layer 2 (character 3) owns the K/V that layers 4,6 read; "
              "keep its attention, or drop theirs too");
    EXPECT_EQ(flags_error({.drop_attention = {"2..4"}}, shape),
              "--drop-attention \"2..4\": layer 3 of 2..4 (character 1) owns the K/V that layers "
              "5,7 read; keep its attention, or drop theirs too");
    EXPECT_EQ(flags_error({.drop_attention = {"2,4"}}, shape),
              "--drop-attention \"2,4\": layer 2 (character 1) owns the K/V that layer 6 reads; "
              "keep its attention, or drop theirs too");
    EXPECT_EQ(flags_error({.skip_layers = {"3"}}, shape),
              "--skip-layers \"3\": layer 3 (character 1) owns the K/V that layers 5,7 read; keep "
              "it, or skip them or drop their attention too");
    EXPECT_EQ(error("drop:2,4,6", shape), "no error");
    EXPECT_EQ(error("skip:3+drop:5,7", shape), "no error");
    EXPECT_EQ(error("skip:3,5,7", shape), "no error");
}

TEST(SharedKvRule, AConsumerComesAfterItsOwner) {
    const ModelShape shape = shared_shape();
    EXPECT_EQ(error("layers:0..1,4,2..7", shape),
              "--spec \"layers:0..1,4,2..7\": layer 4 (character 13) reads the K/V of layer 2, and "
              "no earlier pass of that has attention; put layer 2 before it, or write 4[-attn]");
    EXPECT_EQ(error("layers:0..1,2[-attn],3..7", shape),
              "--spec \"layers:0..1,2[-attn],3..7\": layer 4 of 3..7 (character 22) reads the K/V "
              "of layer 2, and no earlier pass of that has attention; put layer 2 before it, or "
              "write 4[-attn]");
    EXPECT_EQ(error("layers:0..1,4[-attn],2..7", shape), "no error");
    EXPECT_EQ(error("layers:0..1,4,2..7+drop:4", shape), "no error");
}

TEST(QkRule, NeedsAttention) {
    EXPECT_EQ(error("layers:0..2,3[qk=0.5,-attn]", llama_shape({.n_layer = 4})),
              "--spec \"layers:0..2,3[qk=0.5,-attn]\": layer 3 of 3[-attn,qk=0.5] (character 13) "
              "has no attention in this pass; a qk factor needs a pass with attention");
    EXPECT_EQ(error("layers:..[qk=0.5]+drop:2", llama_shape({.n_layer = 4})),
              "--spec \"layers:..[qk=0.5]+drop:2\": layer 2 of ..[qk=0.5] (character 8) has no "
              "attention in this pass; a qk factor needs a pass with attention");
    EXPECT_EQ(error("layers:0..3,2..3[qk=0.5]", hybrid_shape()),
              "--spec \"layers:0..3,2..3[qk=0.5]\": layer 2 of 2..3[qk=0.5] (character 13) is "
              "recurrent; a qk factor needs a pass with attention");
    EXPECT_EQ(error("layers:0..3,2..3[qk=1]", hybrid_shape()), "no error");
    EXPECT_EQ(resolve("layers:0..3,3[qk=0.5]", hybrid_shape())[4].qk_scale, 0.5F);
    EXPECT_EQ(error("layers:0..7,4[qk=0]", shared_shape()), "no error");
}

TEST(ShapeRule, RolesAreConsistent) {
    ModelShape shape = shared_shape();
    shape.layers[4].kv_owner = 5;
    EXPECT_EQ(error("", shape), "layer 4 reads the K/V of layer 5, which owns none");
    shape.layers[4].kv_owner = -1;
    EXPECT_EQ(error("", shape), "layer 4 reads the K/V of layer -1, which owns none");
    shape.layers.clear();
    EXPECT_EQ(error("", shape), "the model has 8 layers, but the shapes of 0");
}

TEST(Roles, DecideWhatMayBeDroppedAndWhatOwnsKv) {
    const auto row = [](Role role) {
        return std::make_tuple(std::string(role_name(role)), droppable(role), owns_kv(role));
    };
    EXPECT_EQ(row(Role::full_attention), std::make_tuple("full_attention", true, true));
    EXPECT_EQ(row(Role::local_attention), std::make_tuple("local_attention", true, true));
    EXPECT_EQ(row(Role::gated_attention), std::make_tuple("gated_attention", true, true));
    EXPECT_EQ(row(Role::shared_kv_attention), std::make_tuple("shared_kv_attention", true, false));
    EXPECT_EQ(row(Role::recurrent), std::make_tuple("recurrent", false, false));
    EXPECT_TRUE(hybrid_shape().hybrid());
    EXPECT_FALSE(shared_shape().hybrid());
}

}  // namespace
}  // namespace pleat
