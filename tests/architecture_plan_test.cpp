#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/baked.h"
#include "support/pleat_run.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_shape.h"
#include "support/random_tokens.h"
#include "support/side_by_side.h"
#include "support/stock.h"
#include "support/stock_passes.h"

// Plans of every architecture give, in every bit, the logits of stock on the plan's baked file; and
// plans that no file can say those of stock run pass by pass (support/stock_passes.h).
namespace pleat::test {
namespace {

const StockSettings one_thread{.n_ctx = 512};
const StockSettings two_threads{.n_ctx = 512, .n_threads = 2, .n_threads_batch = 2};

const RandomModel& model_named(const std::string& name) {
    return std::ranges::find(architecture_models(), name, &NamedModel::name)->model;
}

enum class Kind { full, window, recurrent, consumer };

Kind kind_of(const RandomModel& model, int layer) {
    if (is_recurrent(model, layer)) return Kind::recurrent;
    if (!owns_kv(model, layer)) return Kind::consumer;
    return is_window(model, layer) ? Kind::window : Kind::full;
}

/// Gemma 4's rule: the last owner of the consumer's kind, and those are the last two.
int owner_of(const RandomModel& model, int consumer) {
    return model.n_layer - model.n_shared_kv - (is_window(model, consumer) ? 2 : 1);
}

LayerPlan plan_of(const std::string& path, const std::string& spec) {
    return LayerPlan::resolve(parse_spec(spec), open_model(path)->shape());
}

/// Can a file say this plan to stock? What bake must find out by itself, in the words of the
/// architectures' sheets.
bool stock_can_say(const RandomModel& model, const LayerPlan& plan) {
    bool full = false;
    bool window = false;
    bool recurrent = false;
    std::vector<int> owners;  // the passes before the first consumer
    bool consumers_last = true;
    bool owners_right_before = true;
    for (const Pass& pass : plan) {
        const Kind kind = kind_of(model, pass.layer);
        (is_window(model, pass.layer) ? window : full) |= kind != Kind::recurrent;
        recurrent |= kind == Kind::recurrent;
    }
    size_t n_own = plan.size();
    while (n_own > 0 && kind_of(model, plan[n_own - 1].layer) == Kind::consumer) --n_own;
    for (size_t i = 0; i < plan.size(); ++i) {
        const int layer = plan[i].layer;
        if (kind_of(model, layer) != Kind::consumer) continue;
        consumers_last = consumers_last && i >= n_own;
        const size_t distance = is_window(model, layer) ? 2 : 1;
        const bool right = n_own >= distance &&
                           plan[n_own - distance].layer == owner_of(model, layer) &&
                           (plan[n_own - distance].attention || !plan[i].attention);
        owners_right_before = owners_right_before && right;
    }
    if (is_qwen35(model)) return recurrent && full;
    if (is_gemma(model) && model.n_swa > 0 && !window) return false;
    if (model.architecture == "gemma3") {
        const bool same_scale = model.n_embd / model.n_head == model.head_size();
        return same_scale || (plan.size() == 62) == (model.n_layer == 62);
    }
    if (model.architecture == "gemma4") {
        const bool has_full = !std::ranges::all_of(model.window_layers, std::identity{});
        return (full || !has_full) && consumers_last && owners_right_before && n_own >= 2;
    }
    return true;
}

/// Sequence 0 in batches of one ubatch, past the windows of 16, and then in single tokens.
void expect_same_bits(Context& ours,
                      const std::function<Logits(std::span<const StockToken>)>& stock,
                      int n_vocab) {
    const auto tokens = random_tokens(21, 24, n_vocab);
    size_t at = 0;
    for (const size_t n : {13U, 8U, 1U, 1U, 1U}) {
        const auto batch =
            stock_batch(std::span(tokens).subspan(at, n), static_cast<llama_pos>(at));
        at += n;
        EXPECT_THAT(pleat_decode(ours, batch), BitIdenticalTo(stock(batch)));
    }
}

void expect_same_bits_as_passes(const std::string& path, const std::string& spec,
                                const StockSettings& settings, int n_vocab) {
    SCOPED_TRACE(spec);
    const auto ours = pleat_context(path, spec, settings);
    StockPasses passes(path, ours->plan(), ours->model().shape(), settings);
    expect_same_bits(
        *ours, [&](const auto& batch) { return passes.decode(batch); }, n_vocab);
}

void expect_same_bits_as_baked(const std::string& path, const std::string& spec,
                               const StockSettings& settings, int n_vocab) {
    SCOPED_TRACE(spec);
    BakeReport report;
    const TempFile baked = bake_spec(path, spec, {}, &report);
    // Only a file that says the plan exactly can be held against it.
    EXPECT_THAT(report.warnings, testing::Not(testing::Contains(testing::HasSubstr("rounded"))));
    const Stock stock(baked.path());
    StockContext theirs = stock.context(settings);
    const auto ours = pleat_context(path, spec, settings);
    expect_same_bits(
        *ours, [&](const auto& batch) { return theirs.decode(batch).logits; }, n_vocab);
}

/// Against the plan's file where there is one; else bake has to refuse, and stock runs by passes.
void expect_same_bits(const RandomModel& model, ggml_type type, const std::string& spec,
                      const StockSettings& settings = one_thread) {
    const std::string& path = make_model(model, type).path();
    if (stock_can_say(model, plan_of(path, spec))) {
        expect_same_bits_as_baked(path, spec, settings, model.n_vocab);
    } else {
        EXPECT_THROW(bake_spec(path, spec), Error) << spec;
        expect_same_bits_as_passes(path, spec, settings, model.n_vocab);
    }
}

class ArchitecturePlan : public testing::TestWithParam<NamedModel> {
  protected:
    static const RandomModel& model() { return GetParam().model; }
    static int n_layer() { return model().n_layer; }

    /// The first layer of each kind that the model has, ascending.
    static std::vector<int> first_of_each_kind() {
        std::vector<int> layers;
        for (int layer = 0; layer < n_layer(); ++layer) {
            const bool known = std::ranges::any_of(layers, [&](int other) {
                return kind_of(model(), other) == kind_of(model(), layer);
            });
            if (!known) layers.push_back(layer);
        }
        return layers;
    }
    static bool is_recurrent(int layer) { return kind_of(model(), layer) == Kind::recurrent; }
    /// Do others need this layer's attention?
    static bool is_needed(int layer) {
        for (int other = 0; other < n_layer(); ++other) {
            if (kind_of(model(), other) == Kind::consumer && owner_of(model(), other) == layer) {
                return true;
            }
        }
        if (!is_qwen35(model()) || is_recurrent(layer)) return false;
        for (int other = 0; other < n_layer(); ++other) {
            if (other != layer && !is_recurrent(other)) return false;
        }
        return true;
    }
    /// Stock makes per-layer embeddings of what passes of layer 0 are given, so it cannot be asked
    /// for a second one by itself.
    static bool may_repeat(int layer) { return layer > 0 || model().n_embd_per_layer == 0; }
};

TEST_P(ArchitecturePlan, OfEachKindOfLayerEqualsStock) {
    const int last = n_layer() - 1;
    std::vector<std::string> specs{""};
    for (const int layer : first_of_each_kind()) {
        if (may_repeat(layer)) specs.push_back(fmt::format("{},{}x3", layer, layer + 1));
        if (!is_recurrent(layer) && !is_needed(layer)) {
            specs.push_back(fmt::format("drop:{}", layer));
        }
        if (!is_needed(layer)) specs.push_back(fmt::format("skip:{}", layer));
        specs.push_back(fmt::format("drop-ffn:{}", layer));
        // Once more at the end, as the last pass, whole and without either part.
        if (!may_repeat(layer)) continue;
        specs.push_back(fmt::format("layers:0..{},{}", last, layer));
        specs.push_back(fmt::format("layers:0..{},{}[-ffn]", last, layer));
        if (!is_recurrent(layer)) {
            specs.push_back(fmt::format("layers:0..{},{}[-attn]", last, layer));
        }
    }
    if (n_layer() > 12) {
        // More than 62 passes, each a model of 62 layers in stock, would be too many.
        std::erase_if(specs, [](const std::string& spec) {
            return !stock_can_say(model(), plan_of(make_model(model()).path(), spec));
        });
    }
    // Half of them in each type.
    for (size_t i = 0; i < specs.size(); ++i) {
        expect_same_bits(model(), i % 2 == 0 ? GGML_TYPE_F32 : GGML_TYPE_Q4_0, specs[i]);
    }
}

TEST_P(ArchitecturePlan, OfBlocksOfSeveralKindsEqualsStock) {
    const int n = n_layer();
    if (n > 12) GTEST_SKIP() << "62 layers are held against stock below";
    std::vector<std::string> specs{fmt::format("1,{}", n), fmt::format("1,3x3;{},{}", n - 2, n),
                                   fmt::format("{},{};1,{}", n - 2, n, n - 1)};
    if (may_repeat(0)) specs.push_back(fmt::format("0,{}", n));
    const ggml_type types[] = {GGML_TYPE_F32, GGML_TYPE_F16, GGML_TYPE_Q8_0};
    for (size_t i = 0; i < specs.size(); ++i) expect_same_bits(model(), types[i % 3], specs[i]);
    expect_same_bits_as_passes(make_model(model(), LLAMA_FTYPE_MOSTLY_Q4_K_M).path(),
                               fmt::format("1,{}", n), one_thread, model().n_vocab);
}

int n_attention(const RandomModel& model) {
    int n = 0;
    for (int layer = 0; layer < model.n_layer; ++layer) n += is_recurrent(model, layer) ? 0 : 1;
    return n;
}

/// A path of 1 to 8 passes with marks of all kinds, that the rules allow.
std::string random_path(std::mt19937& random, const RandomModel& model, bool factors) {
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
    std::vector<std::string> items;
    std::vector<bool> written(static_cast<size_t>(model.n_layer));
    bool any_attention = false;
    const auto add = [&](int layer, bool attention) {
        const Kind kind = kind_of(model, layer);
        std::vector<std::string> marks;
        if (kind == Kind::consumer) {
            attention = attention && written[static_cast<size_t>(owner_of(model, layer))];
        }
        // Nor can a file be made in which a hybrid's only attention layer lacks it.
        if (kind == Kind::recurrent || (is_qwen35(model) && n_attention(model) == 1)) {
            attention = true;
        }
        if (!attention) marks.emplace_back("-attn");
        if (below(5) == 0) marks.emplace_back("-ffn");
        const char* const powers[] = {"2", "0", "4", "0.5"};
        const int n_power = factors ? 4 : 0;
        if (n_power > 0 && below(4) == 0) {
            marks.push_back(fmt::format("scale={}", powers[below(n_power)]));
        }
        if (n_power > 0 && attention && kind != Kind::recurrent && below(4) == 0) {
            marks.push_back(fmt::format("qk={}", powers[below(n_power)]));
        }
        written[static_cast<size_t>(layer)] = written[static_cast<size_t>(layer)] || attention;
        any_attention = any_attention || (attention && kind != Kind::recurrent);
        items.push_back(marks.empty() ? fmt::format("{}", layer)
                                      : fmt::format("{}[{}]", layer, fmt::join(marks, ",")));
    };
    const int first = model.n_embd_per_layer > 0 ? 1 : 0;  // see may_repeat
    const int n = 1 + below(7);
    for (int i = 0; i < n; ++i) {
        const int layer = i == 0 ? below(model.n_layer) : first + below(model.n_layer - first);
        add(layer, below(4) != 0);
    }
    // A hybrid keeps an attention layer.
    for (int layer = 0; is_qwen35(model) && !any_attention; ++layer) {
        if (kind_of(model, layer) == Kind::full) add(layer, true);
    }
    return fmt::format("layers:{}", fmt::join(items, ","));
}

/// May K/V be quantised under a plan? The first pass's heads say whether they are turned by
/// matrices of 64 first, which all others must then allow too. Where stock runs pass by pass, it
/// does so on the whole model, which must be turned alike.
bool quantised_cache_fits(const RandomModel& model, const LayerPlan& plan) {
    const auto unit = [&](int layer) { return head_size(model, layer) % 64 == 0 ? 64 : 32; };
    const auto fits = [&](int layer) {
        return is_recurrent(model, layer) || head_size(model, layer) % unit(plan[0].layer) == 0;
    };
    if (stock_can_say(model, plan)) {
        return std::ranges::all_of(plan, [&](const Pass& pass) { return fits(pass.layer); });
    }
    for (int layer = 0; layer < model.n_layer; ++layer) {
        if (!fits(layer)) return false;
    }
    return unit(0) == unit(plan[0].layer);
}

TEST_P(ArchitecturePlan, OfRandomPathsEqualsStock) {
    for (const uint32_t seed : seeds(6)) {
        std::mt19937 random(seed);
        const std::string spec = random_path(random, model(), true);
        SCOPED_TRACE(fmt::format("seed {}", seed));
        StockSettings settings = one_thread;
        if (seed % 3 == 1) settings.flash_attn = LLAMA_FLASH_ATTN_TYPE_DISABLED;
        if (seed % 3 == 2 &&
            quantised_cache_fits(model(), plan_of(make_model(model()).path(), spec))) {
            settings.type_k = GGML_TYPE_Q8_0;
            settings.type_v = GGML_TYPE_Q8_0;
        }
        expect_same_bits(model(), GGML_TYPE_F32, spec, settings);
    }
    for (const uint32_t seed : seeds(2)) {
        std::mt19937 random(100 + seed);
        const std::string spec = random_path(random, model(), false);
        SCOPED_TRACE(fmt::format("seed {}", 100 + seed));
        expect_same_bits(model(), seed == 1 ? GGML_TYPE_Q8_0 : GGML_TYPE_Q4_0, spec);
    }
}

/// A path that a file can say, with every kind of layer twice and a drop: all layers, and again
/// those behind the first.
std::string path_with_all_kinds(const RandomModel& model) {
    const int last = model.n_layer - 1;
    if (model.n_layer == 62) return "skip:3+10,11";
    if (model.n_shared_kv == 0) return fmt::format("layers:0..{},1..{},1[-ffn]", last, last);
    // Owners before consumers.
    const int n_own = model.n_layer - model.n_shared_kv;
    return fmt::format("layers:0..{},{}..{},{}..{},{}[-attn],{}..{}", n_own - 1, n_own - 2,
                       n_own - 1, n_own, last, last, n_own, last);
}

TEST_P(ArchitecturePlan, OfSeveralSequencesEqualsStock) {
    const std::string spec = path_with_all_kinds(model());
    const std::string& path = make_model(model(), GGML_TYPE_Q4_0).path();
    const TempFile baked = bake_spec(path, spec);
    for (const bool unified : {false, true}) {
        SCOPED_TRACE(unified ? "unified" : "streams");
        StockSettings settings = two_threads;
        settings.n_ctx = 768;
        settings.n_ubatch = 32;
        settings.n_seq_max = 3;
        settings.kv_unified = unified;
        SideBySide both(path, spec, baked.path(), settings);
        both.run({{0, 40}, {1, 30}});
        both.step({0, 1}, 2);
        both.cut(1, is_qwen35(model()) ? 0 : 25);
        both.run({{0, 1}, {1, 9}});
        both.copy(0, 2);
        both.run({{2, 5}});
        both.step({2, 0}, 2);
        both.step({0, 1, 2});
    }
}

TEST_P(ArchitecturePlan, InSmallUbatchesBeyond256CellsEqualsStock) {
    const std::string spec = path_with_all_kinds(model());
    const std::string& path = make_model(model(), GGML_TYPE_Q4_0).path();
    const TempFile baked = bake_spec(path, spec);
    StockSettings settings = two_threads;
    settings.n_ubatch = 50;
    SideBySide both(path, spec, baked.path(), settings);
    both.run({{0, 330}}, {.all = false, .rows = {0, 49, 50, 255, 256, 329}});
    both.step({0}, 3);
}

INSTANTIATE_TEST_SUITE_P(All, ArchitecturePlan, testing::ValuesIn(architecture_models()),
                         [](const auto& param) { return param.param.name; });

TEST(StockPasses, EqualStockWhereAFileCanSayThePlanToo) {
    struct Case {
        std::string model;
        std::string spec;
    };
    for (const auto& [name, spec] :
         {Case{"qwen2", "layers:2,1,0[-attn],1[scale=2]"}, Case{"qwen3moe", "1,3+drop-ffn:0"},
          Case{"gemma3", "1,7+drop:5"}, Case{"qwen35", "layers:0..4,3[qk=2],4..7,5"},
          Case{"qwen35moe_merged", "1,4"}, Case{"gemma4", "layers:1..5,1[-ffn],2"},
          Case{"gemma4_shared_kv", "1,3+4,6"}}) {
        SCOPED_TRACE(name);
        const RandomModel& model = model_named(name);
        const std::string& path = make_model(model).path();
        const LayerPlan plan = plan_of(path, spec);
        ASSERT_TRUE(stock_can_say(model, plan));
        const Stock stock(bake_spec(path, spec).path());
        StockContext theirs = stock.context(one_thread);
        StockPasses passes(path, plan, open_model(path)->shape(), one_thread);
        const auto tokens = random_tokens(3, 22, model.n_vocab);
        for (const auto& [at, n] : {std::pair<size_t, size_t>{0, 20}, {20, 1}, {21, 1}}) {
            const auto batch =
                stock_batch(std::span(tokens).subspan(at, n), static_cast<llama_pos>(at));
            EXPECT_THAT(passes.decode(batch), BitIdenticalTo(theirs.decode(batch).logits));
        }
    }
}

// Layers 0 to 2 of "wwfwwf" own K/V: 1 a window's, 2 full. 3 and 4 read those of 1, 5 those of 2.
TEST(SharedKvPlan, ReadsTheLatestEarlierPassOfTheOwner) {
    RandomModel without_embeddings = model_named("gemma4_shared_kv");
    without_embeddings.n_embd_per_layer = 0;
    for (const RandomModel& model : {model_named("gemma4_shared_kv"), without_embeddings}) {
        SCOPED_TRACE(describe(model));
        for (const char* spec : {
                 "layers:0..3,1,4,5",                  // 3 reads the first pass of 1, 4 the second
                 "layers:0..5,1,2,3..5",               // owners again, behind consumers
                 "layers:0..3,1,2,3..5",               // consumer 3 reads one, then the other
                 "layers:0..4,2,5,5",                  // the full owner alone
                 "layers:0..2,1[-attn],3,2[-attn],5",  // a pass without K/V is no owner
                 "layers:0..3,1,2[-attn],4,5,1,3",     //
                 "layers:0,2,1,3,5,4",                 // owners in another order
                 "layers:1,2,0,3,5",                   // and not right before
                 "layers:0..2,3,3,3,1,1,3",            //
                 "layers:2,5,1,4,0,1[-ffn],4[-ffn],5[qk=2],3[scale=0.5]",
             }) {
            for (const auto flash :
                 {LLAMA_FLASH_ATTN_TYPE_ENABLED, LLAMA_FLASH_ATTN_TYPE_DISABLED}) {
                const std::string& path = make_model(model).path();
                ASSERT_FALSE(stock_can_say(model, plan_of(path, spec))) << spec;
                if (model.n_embd_per_layer > 0 &&
                    std::string_view(spec).find(",0") != std::string::npos) {
                    continue;  // layer 0 behind others
                }
                StockSettings settings = one_thread;
                settings.flash_attn = flash;
                expect_same_bits(model, GGML_TYPE_F32, spec, settings);
            }
            if (std::string_view(spec).find('=') == std::string::npos) {
                expect_same_bits(without_embeddings, GGML_TYPE_Q4_0, spec);
            }
        }
    }
    StockSettings quantised = one_thread;  // heads of 128 and 64
    quantised.type_k = GGML_TYPE_Q8_0;
    quantised.type_v = GGML_TYPE_Q8_0;
    expect_same_bits(without_embeddings, GGML_TYPE_F16, "layers:0..5,1,2,3..5", quantised);
    // The other order of kinds: "fwffw", where 3 reads 2 and 4 reads 1.
    for (const char* spec : {"layers:0..3,2,4,3", "layers:0..4,1,2,3,4", "layers:0..3,1,3,4"}) {
        expect_same_bits(model_named("gemma4_unused_kv_scales"), GGML_TYPE_F32, spec);
    }
}

TEST(SharedKvPlan, TellsTheOwnersPassesApart) {
    // Were the wrong pass read, some of these would agree.
    const RandomModel& model = model_named("gemma4_shared_kv");
    const std::string& path = make_model(model).path();
    const auto tokens = random_tokens(5, 20, model.n_vocab);
    // Every second pass adds nothing to the stream, so only its K/V can tell.
    const Logits none = pleat_logits(path, "layers:0..3,4,5", tokens, 20);
    const Logits window = pleat_logits(path, "layers:0..3,1[scale=0],4,5", tokens, 20);
    EXPECT_THAT(window, testing::Not(BitIdenticalTo(none)));
}

std::string bake_error(const RandomModel& model, const std::string& spec) {
    try {
        bake_spec(make_model(model).path(), spec);
    } catch (const Error& error) {
        return error.what();
    }
    return "was baked";
}

TEST(BakeRefuses, AnotherNumberOfLayersWhereStockTellsGemma3ByIt) {
    RandomModel model = model_named("gemma3_of_62_layers");
    EXPECT_EQ(bake_error(model, "10,11"),
              "a model of 62 layers scales its queries by 1/sqrt(32), one of 63 layers by "
              "1/sqrt(16): stock tells the 27B by its 62 layers, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model, "skip:3+10,11"), "was baked");
    model.head_dim = 32;  // what stock takes in its place
    EXPECT_EQ(bake_error(model, "10,11"), "was baked");
    expect_same_bits(model, GGML_TYPE_F32, "10,11");
    // The other way round.
    RandomModel small = model_named("gemma3_pattern_number");
    small.n_layer = 8;
    EXPECT_EQ(bake_error(small, "0,8x7;0,6"),
              "a model of 8 layers scales its queries by 1/sqrt(64), one of 62 layers by "
              "1/sqrt(32): stock tells the 27B by its 62 layers, so this plan cannot be baked");
}

TEST(BakeRefuses, PathsWithoutAKindOfLayerThatStockCannotDoWithout) {
    EXPECT_EQ(bake_error(model_named("gemma3"), "layers:5,11"),
              "the path has no sliding-window layer; stock runs no model with a window and without "
              "such layers, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model_named("gemma4"), "layers:2,5"),
              "the path has no sliding-window layer; stock runs no model with a window and without "
              "such layers, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model_named("gemma3_without_window"), "layers:2,1"), "was baked");
    EXPECT_EQ(bake_error(model_named("gemma4"), "layers:0,1,3"),
              "the path has no layer with full attention; stock takes no rope_freqs.weight then, "
              "so this plan cannot be baked");
    EXPECT_EQ(bake_error(model_named("gemma4_windows_only"), "layers:0,1"), "was baked");
    EXPECT_EQ(bake_error(model_named("qwen35"), "layers:3,7"),
              "the path has no recurrent layer; stock runs no hybrid model without one, so this "
              "plan cannot be baked");
    // Pleat's own rule: see plan_test.
    EXPECT_THROW(plan_of(make_model(model_named("qwen35")).path(), "layers:0,1"), Error);
    for (const char* name : {"qwen35", "qwen35moe_merged"}) {
        expect_same_bits(model_named(name), GGML_TYPE_Q4_0, "layers:3,3");
    }
    expect_same_bits(model_named("gemma3"), GGML_TYPE_Q4_0, "layers:5,11,5");
    expect_same_bits(model_named("gemma4"), GGML_TYPE_Q4_0, "layers:2,5,2");
    expect_same_bits(model_named("gemma4"), GGML_TYPE_Q4_0, "layers:0,3,1");
}

TEST(BakeRefuses, ConsumersThatStockWouldGiveOtherOwners) {
    const RandomModel& model = model_named("gemma4_shared_kv");
    EXPECT_EQ(bake_error(model, "layers:0..5,1,2"),
              "pass 3 (layer 3) reads the K/V of layer 1 and is not among the last passes; stock "
              "knows such layers only at the end, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model, "layers:0,2,1,3..5"),
              "pass 3 (layer 3) reads the K/V of layer 1; stock would read those of pass 1, "
              "counting back from the first such layer, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model, "layers:0..2,2[-attn],5"),
              "pass 4 (layer 5) reads the K/V of layer 2; stock would read those of pass 3, "
              "counting back from the first such layer, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model, "layers:2,5"),
              "the path begins with 1 pass of layers that own K/V; stock runs no model with fewer "
              "than 2, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model, "layers:3[-attn]"),
              "the path begins with no pass of layers that own K/V; stock runs no model with fewer "
              "than 2, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model_named("gemma4_windows_only"), "layers:1"),
              "the path begins with 1 pass of layers that own K/V; stock runs no model with fewer "
              "than 2, so this plan cannot be baked");
    EXPECT_EQ(bake_error(model, "1,3;4,6"), "was baked");
}

}  // namespace
}  // namespace pleat::test
