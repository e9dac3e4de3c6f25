#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "support/baked.h"
#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_tokens.h"
#include "support/side_by_side.h"

// What a context promises where layers keep a state or a window's worth of K/V only: what cannot be
// taken back is refused, and what was taken back leaves nothing behind.
namespace pleat::test {
namespace {

const RandomModel& model_named(const std::string& name) {
    return std::ranges::find(architecture_models(), name, &NamedModel::name)->model;
}

const std::string& hybrid_path() { return make_model(model_named("qwen35")).path(); }
const std::string& window_path() { return make_model(model_named("gemma3")).path(); }

template <typename Function>
std::string error_of(Function&& function) {
    try {
        function();
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

/// The bits of 20 tokens at the end of a sequence, as one batch and four steps.
Logits next_bits(Context& context, int sequence = 0) {
    const auto tokens = random_tokens(17, 20, static_cast<int>(context.n_vocab()));
    Logits logits;
    for (const auto& [at, n] : {std::pair<size_t, size_t>{0, 16}, {16, 1}, {17, 1}, {18, 2}}) {
        logits.append(
            pleat_decode(context, stock_batch(std::span(tokens).subspan(at, n),
                                              context.next_position(sequence), sequence)));
    }
    return logits;
}

TEST(HybridContext, RefusesToCutASequenceBackOrToCopyAPartAndChangesNothing) {
    const StockSettings settings{.n_ctx = 768, .n_seq_max = 3};
    SideBySide both(hybrid_path(), settings);
    both.run({{0, 20}, {1, 7}});
    Context& ours = both.ours();
    EXPECT_EQ(error_of([&] { ours.remove(0, 10); }),
              "positions 10 to 19 of sequence 0 cannot be removed: the recurrent layers keep one "
              "state a sequence, which cannot be cut back; only the whole sequence can go");
    EXPECT_EQ(error_of([&] { ours.remove(0, 0, 19); }),
              "positions 0 to 18 of sequence 0 cannot be removed: the recurrent layers keep one "
              "state a sequence, which cannot be cut back; only the whole sequence can go");
    EXPECT_EQ(error_of([&] { ours.copy(0, 2, 10); }),
              "the first 10 of 20 positions of sequence 0 cannot be copied: the recurrent layers "
              "keep one state a sequence, which cannot be cut back; only all can be copied");
    EXPECT_EQ(error_of([&] { ours.remove(0, 20); }), "no error");  // there is nothing
    EXPECT_EQ(ours.next_position(0), 20);
    EXPECT_EQ(ours.next_position(2), 0);
    both.run({{0, 9}, {1, 1}});
    both.copy(0, 2);
    both.step({0, 1, 2}, 2);
    both.remove(0);
    both.run({{2, 4}, {1, 4}, {0, 4}});
    both.clear();
    both.run({{1, 5}, {0, 5}});
}

TEST(HybridContext, BeginsWithNothingAfterASequenceWasRemoved) {
    for (const bool unified : {false, true}) {
        SCOPED_TRACE(unified ? "unified" : "streams");
        const StockSettings settings{.n_ctx = 512, .n_seq_max = 2, .kv_unified = unified};
        const auto fresh = pleat_context(hybrid_path(), "1,5", settings);
        const Logits expected = next_bits(*fresh);
        const auto used = pleat_context(hybrid_path(), "1,5", settings);
        for (const int sequence : {0, 1}) {
            pleat_decode(*used, stock_batch(random_tokens(3, 30, 384), 0, sequence));
        }
        EXPECT_THAT(next_bits(*used), testing::Not(BitIdenticalTo(expected)));
        used->remove(0);
        EXPECT_THAT(next_bits(*used), BitIdenticalTo(expected));
        used->clear();
        EXPECT_THAT(next_bits(*used), BitIdenticalTo(expected));
        used->clear();
        // In a row of its own: the other sequence's state is not this one's.
        EXPECT_THAT(next_bits(*used, 1), BitIdenticalTo(expected));
    }
}

TEST(WindowContext, IsCutBackAsFarAsItsCellsReachAndNoFurther) {
    // A window of 16 and ubatches of 16 make 256 cells; 400 tokens leave positions 144 to 399.
    const StockSettings settings{.n_ctx = 768, .n_ubatch = 16};
    SideBySide both(window_path(), settings);
    both.run({{0, 400}}, {.all = false, .rows = {399}});
    Context& ours = both.ours();
    EXPECT_EQ(error_of([&] { ours.remove(0, 158); }),
              "sequence 0 cannot be cut back to 158 positions: its window layers keep positions "
              "144 to 399 only, so it can be cut to 159 at least, or removed whole; --swa-full "
              "keeps all");
    EXPECT_EQ(ours.next_position(0), 400);
    both.cut(0, 399);
    both.step({0});
    both.cut(0, 159);
    both.run({{0, 30}});
    both.step({0}, 2);
    both.remove(0);
    both.run({{0, 30}});
}

TEST(WindowContext, IsCutBackAnywhereWithAllCells) {
    const StockSettings settings{.n_ctx = 768, .n_ubatch = 16, .swa_full = true};
    SideBySide both(window_path(), settings);
    both.run({{0, 400}}, {.all = false, .rows = {399}});
    both.cut(0, 5);
    both.run({{0, 30}});
    both.step({0}, 2);
}

/// Runs a batch and cancels it half way, from another thread; again, sooner, when it had ended.
/// False when it never was cancelled.
bool cancel_half_way(Context& context, std::span<const int32_t> tokens,
                     std::chrono::microseconds duration) {
    const int32_t length = context.next_position(0);
    for (auto wait = duration / 2; wait.count() > 0; wait /= 2) {
        std::thread canceller([&] {
            std::this_thread::sleep_for(wait);
            context.cancel();
        });
        const DecodeStatus status = context.decode(0, tokens);
        canceller.join();
        if (status == DecodeStatus::cancelled) return true;
        context.remove(0, length);
        if (context.next_position(0) != length) return false;
    }
    return false;
}

/// After a cancelled batch of many ubatches a context goes on as if there had been none.
void expect_nothing_of_a_cancelled_batch(const std::string& path, const std::string& spec,
                                         size_t n_before, const StockSettings& settings) {
    SCOPED_TRACE(fmt::format("{} before", n_before));
    const auto tokens = random_tokens(5, n_before + 1200, 384);
    const auto before = std::span(tokens).first(n_before);
    const auto batch = std::span(tokens).subspan(n_before);
    const auto begin = [&](Context& context) {
        if (!before.empty()) pleat_decode(context, stock_batch(before));
    };
    const auto plain = pleat_context(path, spec, settings);
    begin(*plain);
    const Logits expected = next_bits(*plain);
    const auto timed = pleat_context(path, spec, settings);
    begin(*timed);
    const auto start = std::chrono::steady_clock::now();
    ASSERT_EQ(timed->decode(0, batch), DecodeStatus::ok);
    const auto duration = std::chrono::duration_cast<std::chrono::microseconds>(
        std::chrono::steady_clock::now() - start);
    const auto cancelled = pleat_context(path, spec, settings);
    begin(*cancelled);
    if (!cancel_half_way(*cancelled, batch, duration)) GTEST_SKIP() << "was never cancelled";
    EXPECT_EQ(cancelled->next_position(0), static_cast<int32_t>(n_before));
    EXPECT_EQ(cancelled->n_outputs(), 0U);
    EXPECT_THAT(next_bits(*cancelled), BitIdenticalTo(expected));
}

const StockSettings many_ubatches{.n_ctx = 2048, .n_ubatch = 16};

TEST(HybridContext, KeepsNothingOfABatchThatWasCancelled) {
    for (const size_t n_before : {0U, 30U}) {
        expect_nothing_of_a_cancelled_batch(hybrid_path(), "1,5", n_before, many_ubatches);
    }
}

TEST(WindowContext, KeepsNothingOfABatchThatWasCancelled) {
    // Behind 300 tokens the batch's cells are those that the window's tokens lie in.
    for (const size_t n_before : {0U, 30U, 300U}) {
        expect_nothing_of_a_cancelled_batch(window_path(), "", n_before, many_ubatches);
    }
}

TEST(HybridContext, TakesTurnsWithAnotherOfTheSameModel) {
    const std::string specs[] = {"1,5", "layers:0,1,3,2,4[-ffn],3[-attn],7,5,1"};
    const StockSettings settings{.n_ctx = 512, .n_threads = 2, .n_threads_batch = 2};
    const auto tokens = random_tokens(31, 20, 384);
    start_stock();
    const auto model = open_model(hybrid_path());
    std::vector<std::unique_ptr<Context>> contexts;
    for (const std::string& spec : specs) {
        contexts.push_back(std::make_unique<Context>(
            model, LayerPlan::resolve(parse_spec(spec), model->shape()), pleat_settings(settings)));
    }
    Logits in_turns[2];
    for (size_t i = 0; i < tokens.size(); i += i == 0 ? 10 : 1) {
        for (size_t c = 0; c < 2; ++c) {
            const auto part = std::span(tokens).subspan(i, i == 0 ? 10 : 1);
            in_turns[c].append(
                pleat_decode(*contexts[c], stock_batch(part, static_cast<llama_pos>(i))));
        }
    }
    for (size_t c = 0; c < 2; ++c) {
        SCOPED_TRACE(specs[c]);
        EXPECT_THAT(in_turns[c],
                    BitIdenticalTo(stock_logits(bake_spec(hybrid_path(), specs[c]).path(), tokens,
                                                10, settings)));
    }
}

}  // namespace
}  // namespace pleat::test
