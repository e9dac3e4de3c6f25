#include "plan/spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <limits>

#include "plan/test_shapes.h"

namespace pleat {
namespace {

using ::testing::ElementsAre;

Spec repeat(const std::string& text) { return parse_flags({.repeat_layers = {text}}); }
Spec layers(const std::string& text) { return parse_flags({.layers = {text}}); }
Spec skip(const std::string& text) { return parse_flags({.skip_layers = {text}}); }

RepeatBlock block(int64_t begin, int64_t end, int64_t traversals = 2) {
    return {.begin = begin, .end = end, .traversals = traversals};
}

LayerItem item(std::optional<int64_t> first, std::optional<int64_t> last, Marks marks = {}) {
    return {.first = first, .last = last, .marks = marks};
}

TEST(RepeatGrammar, ABlockIsWrittenInThreeWays) {
    EXPECT_THAT(repeat("26,34").repeat, ElementsAre(block(26, 34)));
    EXPECT_THAT(repeat("26-34").repeat, ElementsAre(block(26, 34)));
    EXPECT_THAT(repeat("(26,34)").repeat, ElementsAre(block(26, 34)));
    EXPECT_THAT(repeat("(1,2);3-4;5,6").repeat, ElementsAre(block(1, 2), block(3, 4), block(5, 6)));
}

TEST(RepeatGrammar, XCountsTheTraversalsInAll) {
    EXPECT_THAT(repeat("26,34x3;(26,34)x1;1-2x12").repeat,
                ElementsAre(block(26, 34, 3), block(26, 34, 1), block(1, 2, 12)));
}

TEST(RepeatGrammar, APrefixAndSpacesAreIgnored) {
    EXPECT_EQ(repeat(" blocks: 26 , 34 x 3 ; ( 1 , 2 )\t"), repeat("26,34x3;1,2"));
}

TEST(RepeatGrammar, ZeroZeroAloneIsTheIdentity) {
    EXPECT_TRUE(repeat("0,0").identity());
    EXPECT_TRUE(repeat("blocks:(0,0)").identity());
    EXPECT_TRUE(parse_spec("0,0").identity());
    EXPECT_THAT(repeat("0,0;1,2").repeat, ElementsAre(block(0, 0), block(1, 2)));
}

TEST(RepeatGrammar, SeveralFlagsAreJoined) {
    EXPECT_EQ(parse_flags({.repeat_layers = {"1,2", "3,4;5,6"}}), repeat("1,2;3,4;5,6"));
    EXPECT_EQ(parse_flags({.layers = {"1,2", "3"}}), layers("1,2,3"));
    EXPECT_EQ(parse_flags({.drop_attention = {"1", "3"}, .drop_ffn = {"2", "4"}}),
              parse_spec("drop:1,3+drop-ffn:2,4"));
    EXPECT_EQ(error_of([] {
                  parse_flags({.repeat_layers = {"1,2", "3"}});
              }),
              "--repeat-layers \"1,2;3\": the end of the text (character 6) is not expected in a "
              "block; write a block as i,j or i-j or (i,j), then xN if wanted");
}

TEST(RepeatGrammar, ErrorsNameTheItemItsPlaceAndTheRule) {
    const auto error = [](const std::string& text) { return error_of([&] { repeat(text); }); };
    EXPECT_EQ(error(""),
              "--repeat-layers \"\": an empty block (character 1) is not allowed; put ; only "
              "between blocks");
    EXPECT_EQ(error("1,2;"),
              "--repeat-layers \"1,2;\": an empty block (character 5) is not allowed; put ; only "
              "between blocks");
    EXPECT_EQ(error("1,2;;3,4"),
              "--repeat-layers \"1,2;;3,4\": an empty block (character 5) is not allowed; put ; "
              "only between blocks");
    EXPECT_EQ(
        error("blocks:"),
        "--repeat-layers \"blocks:\": an empty block (character 8) is not allowed; put ; only "
        "between blocks");
    EXPECT_EQ(error("1,y"),
              "--repeat-layers \"1,y\": \"y\" (character 3) is not expected in a block; write a "
              "block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_EQ(error("-1,2"),
              "--repeat-layers \"-1,2\": \"-\" (character 1) is not expected in a block; write a "
              "block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_EQ(error("(1-2)"),
              "--repeat-layers \"(1-2)\": \"-\" (character 3) is not expected in a block; write a "
              "block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_EQ(error("(1,2"),
              "--repeat-layers \"(1,2\": the end of the text (character 5) is not expected in a "
              "block; write a block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_EQ(error("10,14,20,24"),
              "--repeat-layers \"10,14,20,24\": \",\" (character 6) is not expected after block "
              "10,14; put ; between blocks");
    EXPECT_EQ(error("2 6,34"),
              "--repeat-layers \"2 6,34\": \"6\" (character 3) is not expected in a block; write a "
              "block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_EQ(
        error("1,2x"),
        "--repeat-layers \"1,2x\": the end of the text (character 5) is not expected after x; "
        "write xN for N traversals in all");
    EXPECT_EQ(
        error("3,4;1,2x0"),
        "--repeat-layers \"3,4;1,2x0\": block 1,2x0 (character 5) has no traversal; xN counts "
        "all of them, so N >= 1 (x1 changes nothing)");
}

TEST(RepeatGrammar, AnInclusiveRangeIsAnErrorThatComputesTheBlock) {
    const auto error = [](const std::string& text) { return error_of([&] { repeat(text); }); };
    EXPECT_EQ(error("1,2;26..33"),
              "--repeat-layers \"1,2;26..33\": 26..33 (character 5) is not a block; blocks are "
              "half-open, so write 26,34 for layers 26 to 33");
    EXPECT_EQ(error("33..26"),
              "--repeat-layers \"33..26\": 33..26 (character 1) is not a block; blocks are "
              "half-open, so write a,b+1 for layers a to b");
    EXPECT_EQ(error("33.."),
              "--repeat-layers \"33..\": 33.. (character 1) is not a block; blocks are half-open, "
              "so write a,b+1 for layers a to b");
}

TEST(Numbers, AreRefusedWhenTheyDoNotFit) {
    EXPECT_EQ(error_of([] { repeat("0,9223372036854775807"); }),
              "--repeat-layers \"0,9223372036854775807\": number 9223372036854775807 (character 3) "
              "is too large for a layer or a count");
    EXPECT_EQ(error_of([] { repeat("1,2x" + std::string(90, '9')); }),
              "--repeat-layers \"1,2x" + std::string(90, '9') +
                  "\": number 999999999999999999999999... (character 5) is too large for a layer "
                  "or a count");
    EXPECT_THAT(repeat("007,0000000000000000000000000000008").repeat, ElementsAre(block(7, 8)));
}

TEST(LayersGrammar, ItemsAreNumbersAndInclusiveRanges) {
    EXPECT_THAT(*layers("5,0..3,3..0,7..,..2,..").layers,
                ElementsAre(item(5, 5), item(0, 3), item(3, 0), item(7, std::nullopt),
                            item(std::nullopt, 2), item(std::nullopt, std::nullopt)));
    EXPECT_EQ(layers("layers: 0 .. 3 , 5"), layers("0..3,5"));
    EXPECT_EQ(layers("5..5"), layers("5"));
}

TEST(LayersGrammar, OneGroupOfMarksFollowsAnItem) {
    EXPECT_THAT(
        *layers("26..33[-attn],3[-ffn],4[scale=0.7],5[ qk = .8 , -ffn ],..[scale=1e+2]").layers,
        ElementsAre(item(26, 33, {.attention = false}), item(3, 3, {.ffn = false}),
                    item(4, 4, {.scale = 0.7F}), item(5, 5, {.ffn = false, .qk_scale = 0.8F}),
                    item(std::nullopt, std::nullopt, {.scale = 100.0F})));
    EXPECT_EQ(layers("3[scale=1,qk=1.0]"), layers("3"));
}

TEST(LayersGrammar, FactorsDoNotDependOnTheLocale) {
    const std::string before = std::setlocale(LC_ALL, nullptr);
    for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "C"}) {
        if (std::setlocale(LC_ALL, locale) == nullptr) continue;
        EXPECT_EQ(layers("3[scale=0.7]").layers->front().marks.scale, 0.7F);
        EXPECT_EQ(print_spec(layers("3[scale=0.7]")), "layers:3[scale=0.7]");
    }
    std::setlocale(LC_ALL, before.c_str());
}

TEST(LayersGrammar, ErrorsNameTheItemItsPlaceAndTheRule) {
    const auto error = [](const std::string& text) { return error_of([&] { layers(text); }); };
    EXPECT_EQ(
        error(""),
        "--layers \"\": an empty item (character 1) is not allowed; put , only between items");
    EXPECT_EQ(error("1,"),
              "--layers \"1,\": an empty item (character 3) is not allowed; put , only between "
              "items");
    EXPECT_EQ(error("1,,2"),
              "--layers \"1,,2\": an empty item (character 3) is not allowed; put , only between "
              "items");
    EXPECT_EQ(error("1;2"),
              "--layers \"1;2\": \";\" (character 2) is not expected after item 1; put , between "
              "items");
    EXPECT_EQ(error("1...3"),
              "--layers \"1...3\": \".\" (character 4) is not expected after item 1..; put , "
              "between items");
    EXPECT_EQ(error("0x1f"),
              "--layers \"0x1f\": \"x\" (character 2) is not expected after item 0; put , between "
              "items");
    EXPECT_EQ(error("all"),
              "--layers \"all\": \"a\" (character 1) is not expected in a list of layers; write an "
              "item as n, a..b, a.., ..b or ..");
    EXPECT_EQ(error("0,26-33"),
              "--layers \"0,26-33\": 26-33 (character 3) is not a range here, because a dash is "
              "half-open in blocks to repeat; write 26..33 for layers 26 to 33, both included");
    EXPECT_EQ(error("26-"),
              "--layers \"26-\": the end of the text (character 4) is not expected in a list of "
              "layers; write an item as n, a..b, a.., ..b or ..");
}

TEST(LayersGrammar, MarkErrorsNameTheMark) {
    const auto error = [](const std::string& text) { return error_of([&] { layers(text); }); };
    EXPECT_EQ(error("1[]"),
              "--layers \"1[]\": \"]\" (character 3) is not expected in marks; marks are -attn, "
              "-ffn, scale=F and qk=F");
    EXPECT_EQ(error("1[-attn,]"),
              "--layers \"1[-attn,]\": \"]\" (character 9) is not expected in marks; marks are "
              "-attn, -ffn, scale=F and qk=F");
    EXPECT_EQ(error("1[attn]"),
              "--layers \"1[attn]\": mark attn (character 3) is not known; marks are -attn, -ffn, "
              "scale=F and qk=F");
    EXPECT_EQ(error("1[-attn,-attn]"),
              "--layers \"1[-attn,-attn]\": mark -attn (character 9) comes twice; each mark may "
              "come once");
    EXPECT_EQ(error("1[scale=1,scale=1]"),
              "--layers \"1[scale=1,scale=1]\": mark scale (character 11) comes twice; each mark "
              "may come once");
    EXPECT_EQ(error("1[-attn"),
              "--layers \"1[-attn\": the end of the text (character 8) is not expected in marks; "
              "put , between marks and ] after the last");
    EXPECT_EQ(error("1[-attn][-ffn]"),
              "--layers \"1[-attn][-ffn]\": \"[\" (character 9) is not expected after ]; an item "
              "has one group of marks; put , between the marks");
    EXPECT_EQ(error("1[scale]"),
              "--layers \"1[scale]\": \"]\" (character 8) is not expected in marks; marks are "
              "-attn, -ffn, scale=F and qk=F");
    EXPECT_EQ(error("1[qk=]"),
              "--layers \"1[qk=]\": \"]\" (character 6) is not expected after qk=; write a number "
              ">= 0");
}

TEST(LayersGrammar, FactorsAreFiniteAndNotNegative) {
    for (const std::string factor :
         {"-0.5", "-0", "nan", "inf", "0x1p3", "1.2.3", "1e", "e1", "+1", ".", "infinity", "1f"}) {
        EXPECT_EQ(
            error_of([&] { layers("1[scale=" + factor + "]"); }),
            "--layers \"1[scale=" + factor + "]\": scale=" + factor +
                " (character 9) is not a factor; factors are finite and >= 0, for example 0.7");
    }
    for (const std::string factor : {"1e39", "1e-60", "1e999999999"}) {
        EXPECT_EQ(
            error_of([&] { layers("1[qk=" + factor + "]"); }),
            "--layers \"1[qk=" + factor + "]\": qk=" + factor +
                " (character 6) does not fit into a 32-bit float; factors are finite and >= 0");
    }
}

TEST(SetGrammar, TakesNoMarks) {
    EXPECT_EQ(
        error_of([] { skip("1,2[-attn]"); }),
        "--skip-layers \"1,2[-attn]\": \"[\" (character 4) is not expected after item 2; only "
        "--layers takes marks in brackets");
    EXPECT_EQ(error_of([] { parse_flags({.drop_ffn = {"1 2"}}); }),
              "--drop-ffn \"1 2\": \"2\" (character 3) is not expected after item 1; put , between "
              "items");
    EXPECT_EQ(error_of([] { parse_flags({.drop_attention = {"1-2"}}); }),
              "--drop-attention \"1-2\": 1-2 (character 1) is not a range here, because a dash is "
              "half-open in blocks to repeat; write 1..2 for layers 1 to 2, both included");
}

TEST(Combinations, AnExplicitPathExcludesRepeatAndSkip) {
    EXPECT_EQ(error_of([] { parse_flags({.repeat_layers = {"1,2"}, .layers = {"0..3"}}); }),
              "--repeat-layers \"1,2\": a block to repeat (character 1) cannot be combined with "
              "--layers; that is the whole path, so write it there");
    EXPECT_EQ(error_of([] { parse_flags({.repeat_layers = {"0,0"}, .layers = {"0..3"}}); }),
              "--repeat-layers \"0,0\": a block to repeat (character 1) cannot be combined with "
              "--layers; that is the whole path, so write it there");
    EXPECT_EQ(
        error_of([] { parse_flags({.layers = {"0..3"}, .skip_layers = {"2"}}); }),
        "--skip-layers \"2\": a layer to skip (character 1) cannot be combined with --layers; "
        "that is the whole path, so write it there");
    EXPECT_EQ(
        error_of([] { parse_spec("layers:0..3+1,2"); }),
        "--spec \"layers:0..3+1,2\": a block to repeat (character 13) cannot be combined with "
        "layers:; that is the whole path, so write it there");
}

TEST(OneLine, NothingIsTheIdentity) {
    EXPECT_TRUE(parse_spec("").identity());
    EXPECT_TRUE(parse_spec("  ").identity());
    EXPECT_EQ(print_spec(Spec{}), "");
}

TEST(OneLine, BareTextIsRepeat) {
    EXPECT_EQ(parse_spec("26,34x3;1,2"), repeat("26,34x3;1,2"));
    EXPECT_EQ(parse_spec("blocks:26,34"), repeat("26,34"));
    EXPECT_EQ(parse_spec("repeat:blocks:26,34"), repeat("26,34"));
}

TEST(OneLine, PartsAreJoinedByPlus) {
    const Spec spec = parse_spec(" repeat:26,34 + skip:3 + drop:1,2 + drop-ffn:5..7 + 1,2 ");
    EXPECT_EQ(spec, parse_flags({.repeat_layers = {"26,34", "1,2"},
                                 .skip_layers = {"3"},
                                 .drop_attention = {"1,2"},
                                 .drop_ffn = {"5..7"}}));
    EXPECT_EQ(print_spec(spec), "repeat:26,34;1,2+skip:3+drop:1,2+drop-ffn:5..7");
}

TEST(OneLine, APlusInAnExponentJoinsNothing) {
    const Spec spec = parse_spec("layers:0..3[scale=1e+20]+drop:1");
    EXPECT_EQ(spec.layers->front().marks.scale, 1e20F);
    EXPECT_EQ(parse_spec(print_spec(spec)), spec);
}

TEST(OneLine, ErrorsCountInTheWholeText) {
    const auto error = [](const std::string& text) { return error_of([&] { parse_spec(text); }); };
    EXPECT_EQ(error("1,2+"),
              "--spec \"1,2+\": an empty part (character 5) is not allowed; put + only between "
              "parts");
    EXPECT_EQ(error("1,2++skip:3"),
              "--spec \"1,2++skip:3\": an empty part (character 5) is not allowed; put + only "
              "between parts");
    EXPECT_EQ(error("skip:3+drop:x"),
              "--spec \"skip:3+drop:x\": \"x\" (character 13) is not expected in a list of layers; "
              "write an item as n, a..b, a.., ..b or ..");
    EXPECT_EQ(error("skip:+drop:1"),
              "--spec \"skip:+drop:1\": an empty item (character 6) is not allowed; put , only "
              "between items");
    EXPECT_EQ(error("jump:3"),
              "--spec \"jump:3\": part jump: (character 1) is not known; parts are repeat:, "
              "layers:, skip:, drop: and drop-ffn:");
    EXPECT_EQ(
        error_of([] { parse_spec("nonsense", "/plan"); }),
        "/plan \"nonsense\": \"n\" (character 1) is not expected in a block; write a block as "
        "i,j or i-j or (i,j), then xN if wanted");
}

TEST(Quoting, StaysOneLineOfPrintableText) {
    EXPECT_EQ(error_of([] { repeat("1,2\n;\x1b[31m"); }),
              "--repeat-layers \"1,2\\n;\\x1b[31m\": \"\\x1b\" (character 6) is not expected in a "
              "block; write a block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_EQ(error_of([] { repeat("\"\\\xe2\x80\x93"); }),
              "--repeat-layers \"\\\"\\\\\\xe2\\x80\\x93\": \"\\\"\" (character 1) is not expected "
              "in a block; write a block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_EQ(error_of([] { repeat(std::string("1,2\0", 4)); }),
              "--repeat-layers \"1,2\\x00\": \"\\x00\" (character 4) is not expected after block "
              "1,2; put ; between blocks");
}

TEST(Quoting, ALongTextKeepsWhatSurroundsTheItem) {
    std::string text;
    for (int i = 0; i < 100'000; ++i) text += "1,2;";
    EXPECT_EQ(
        error_of([&] { repeat(text + "y;" + text); }),
        "--repeat-layers \"... 1,2;1,2;1,2;1,2;1,2;1,2;1,2;1,2;1,2;1,2;y;1,2;1,2;1,2;1,2;1,2;"
        "1,2;1,2;1,2;1,2;1, ...\": \"y\" (character 400001) is not expected in a block; write "
        "a block as i,j or i-j or (i,j), then xN if wanted");
    EXPECT_LT(error_of([&] { repeat(text); }).size(), 250U);
    EXPECT_LT(error_of([&] { layers(std::string(1'000'000, '[')); }).size(), 250U);
}

}  // namespace
}  // namespace pleat
