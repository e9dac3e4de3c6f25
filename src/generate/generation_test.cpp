#include "generate/generation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

constexpr int64_t much_room = 1000;

GenerationParams greedy(int32_t n_predict = -1) {
    GenerationParams params{.n_predict = n_predict};
    params.sampling.temp = 0.0F;
    return params;
}

std::vector<int32_t> tokens_of(std::string_view text) {
    return demo_tokenizer().tokenize(text, false, true);
}

/// A model that is sure of its next token.
std::vector<float> sure_of(int32_t token) {
    std::vector<float> logits(static_cast<size_t>(demo_tokenizer().n_vocab()));
    logits[static_cast<size_t>(token)] = 20.0F;
    return logits;
}

struct Told {
    std::vector<std::string> pieces;  ///< what step() gave, one per token
    std::string text;
    std::optional<FinishReason> reason;
    std::string stop;
    size_t n_tokens = 0;
};

/// Lets a sure model say these tokens.
Told tell(std::span<const int32_t> tokens, const GenerationParams& params,
          int64_t n_room = much_room) {
    Generation generation(params, demo_tokenizer(), {}, n_room);
    Told told;
    for (const int32_t token : tokens) {
        if (generation.finished()) break;
        told.pieces.push_back(generation.step(sure_of(token)));
        told.text += told.pieces.back();
    }
    if (generation.finished()) told.reason = generation.reason();
    told.stop = generation.stop();
    told.n_tokens = generation.tokens().size();
    return told;
}

TEST(Generation, GivesTheTextOfTheTokensDrawn) {
    const std::string text = "The key is in the tower.";
    const Told told = tell(tokens_of(text), greedy());
    EXPECT_EQ(told.text, text);
    EXPECT_EQ(told.reason, std::nullopt);
    EXPECT_EQ(told.n_tokens, tokens_of(text).size());
}

TEST(Generation, EndsAtAnEndToken) {
    const std::vector<int32_t> tokens = tokens_of("yes<|end|>no");
    const Told told = tell(tokens, greedy());
    EXPECT_EQ(told.text, "yes");
    EXPECT_EQ(told.reason, FinishReason::eos);
    EXPECT_EQ(told.n_tokens, tokens_of("yes<|end|>").size());
}

TEST(Generation, ShowsControlTokensWhenAsked) {
    GenerationParams params = greedy();
    params.special = true;
    EXPECT_EQ(tell(tokens_of("yes<|end|>"), params).text, "yes<|end|>");
}

TEST(Generation, EndsAfterTheTokensAskedFor) {
    const Told told = tell(tokens_of("1 2 3 4 5 6"), greedy(4));
    EXPECT_EQ(told.reason, FinishReason::length);
    EXPECT_EQ(told.n_tokens, 4U);
}

TEST(Generation, EndsWhereTheContextIsFull) {
    const Told told = tell(tokens_of("1 2 3 4 5 6"), greedy(), 3);
    EXPECT_EQ(told.reason, FinishReason::context);
    EXPECT_EQ(told.n_tokens, 3U);
}

TEST(Generation, OfNothingIsOverBeforeItBegins) {
    const Generation none(greedy(0), demo_tokenizer(), {}, much_room);
    EXPECT_TRUE(none.finished());
    EXPECT_EQ(none.reason(), FinishReason::length);
    const Generation no_room(greedy(), demo_tokenizer(), {}, 0);
    EXPECT_TRUE(no_room.finished());
    EXPECT_EQ(no_room.reason(), FinishReason::context);
}

TEST(Generation, EndsBeforeAStopString) {
    GenerationParams params = greedy();
    params.stops = {"\nUser:", "tower"};
    const Told told = tell(tokens_of("in the tower."), params);
    EXPECT_EQ(told.text, "in the ");
    EXPECT_EQ(told.stop, "tower");
    EXPECT_EQ(told.reason, FinishReason::stop_string);
}

TEST(Generation, HoldsBackWhatMayBecomeAStopString) {
    GenerationParams params = greedy();
    params.stops = {"12x"};
    const Told told = tell(tokens_of("1123"), params);
    EXPECT_THAT(told.pieces, ElementsAre("", "1", "", "123"));
}

TEST(Generation, GivesWholeCharacters) {
    const std::vector<int32_t> tokens = tokens_of("\u00e9\u20ac");
    ASSERT_THAT(tokens, SizeIs(5)) << "one token per byte";
    EXPECT_THAT(tell(tokens, greedy()).pieces, ElementsAre("", "\u00e9", "", "", "\u20ac"));
}

TEST(Generation, CutInsideOfACharacterEndsInAReplacement) {
    const Told told = tell(tokens_of("a\u20ac"), greedy(3));
    EXPECT_EQ(told.text, "a\ufffd");
    GenerationParams params = greedy(3);
    params.whole_characters = true;
    EXPECT_EQ(tell(tokens_of("a\u20ac"), params).text, "a");
    params.n_predict = 4;
    EXPECT_EQ(tell(tokens_of("a\u20ac"), params).text, "a\u20ac");
}

TEST(Generation, GivesTheHeldBackTextWhenCancelled) {
    GenerationParams params = greedy();
    params.stops = {"12x"};
    Generation generation(params, demo_tokenizer(), {}, much_room);
    EXPECT_EQ(generation.step(sure_of(tokens_of("1").front())), "");
    EXPECT_EQ(generation.finish(FinishReason::cancelled), "1");
    EXPECT_EQ(generation.finish(FinishReason::length), "") << "it has ended already";
    EXPECT_EQ(generation.reason(), FinishReason::cancelled);
    EXPECT_EQ(message_of([&] { generation.step(sure_of(0)); }),
              "the generation has ended (cancelled)");
}

TEST(Generation, CountsThePromptForPenalties) {
    GenerationParams params = greedy();
    params.sampling.penalty_repeat = 10.0F;
    const std::vector<int32_t> prompt = tokens_of("A");
    std::vector<float> logits = sure_of(prompt.front());
    const int32_t other = tokens_of("B").front();
    logits[static_cast<size_t>(other)] = 19.0F;
    Generation fresh(params, demo_tokenizer(), {}, much_room);
    Generation penalised(params, demo_tokenizer(), prompt, much_room);
    fresh.step(logits);
    penalised.step(logits);
    EXPECT_THAT(fresh.tokens(), ElementsAre(prompt.front()));
    EXPECT_THAT(penalised.tokens(), ElementsAre(other));
}

TEST(Generation, RefusesABadParameterAtOnce) {
    GenerationParams params = greedy();
    params.sampling.constraint.text = "root ::= (";
    EXPECT_THAT(message_of([&] { Generation(params, demo_tokenizer(), {}, much_room); }),
                HasSubstr("grammar"));
}

TEST(FinishReasons, HaveTheNamesOfTheJsonOutput) {
    EXPECT_EQ(finish_reason_name(FinishReason::eos), "eos");
    EXPECT_EQ(finish_reason_name(FinishReason::stop_string), "stop");
    EXPECT_EQ(finish_reason_name(FinishReason::length), "length");
    EXPECT_EQ(finish_reason_name(FinishReason::context), "context");
    EXPECT_EQ(finish_reason_name(FinishReason::cancelled), "cancelled");
}

}  // namespace
}  // namespace pleat
