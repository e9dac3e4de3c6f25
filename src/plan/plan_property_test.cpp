#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "plan/cost.h"
#include "plan/test_shapes.h"

namespace pleat {
namespace {

constexpr uint32_t n_seed = 3'000;

std::vector<ModelShape> shapes_of(int32_t n_layer) {
    return {llama_shape({.n_layer = n_layer}), hybrid_shape({.n_layer = n_layer}),
            window_shape({.n_layer = n_layer, .n_swa = 512}),
            shared_shape({.n_layer = n_layer, .n_swa = 512})};
}

/// Calls with every random spec that a model accepts; most of them must be.
template <typename Call>
void for_each_plan(Call call) {
    size_t n_plan = 0;
    for (uint32_t seed = 0; seed < n_seed; ++seed) {
        const int32_t n_layer = 4 + static_cast<int32_t>(seed % 21);
        const Spec spec = random_spec(seed, n_layer);
        for (const ModelShape& shape : shapes_of(n_layer)) {
            SCOPED_TRACE(fmt::format("seed {}: {}", seed, print_spec(spec)));
            std::optional<LayerPlan> plan;
            try {
                plan = LayerPlan::resolve(spec, shape);
            } catch (const Error&) {
                continue;
            }
            ++n_plan;
            call(spec, shape, *plan);
        }
        if (::testing::Test::HasFailure()) return;
    }
    EXPECT_GT(n_plan, n_seed);
}

TEST(SpecProperty, ParsingWhatWasPrintedGivesTheSameSpec) {  // places in the text take no part
    for (uint32_t seed = 0; seed < n_seed; ++seed) {
        const Spec spec = random_spec(seed, 48);
        SCOPED_TRACE(fmt::format("seed {}: {}", seed, print_spec(spec)));
        EXPECT_EQ(parse_spec(print_spec(spec)), spec);
    }
}

TEST(PlanProperty, TheCanonicalTextResolvesToTheSamePlan) {
    for_each_plan([](const Spec&, const ModelShape& shape, const LayerPlan& plan) {
        const LayerPlan again = resolve("layers:" + plan.canonical(), shape);
        EXPECT_EQ(again, plan);
        EXPECT_EQ(again.slots(), plan.slots());
        EXPECT_EQ(again.hash(), plan.hash());
        EXPECT_EQ(again.canonical(), plan.canonical());
    });
}

TEST(PlanProperty, FirstVisitsAreTheIdentityWithoutSkips) {
    for_each_plan([](const Spec& spec, const ModelShape& shape, const LayerPlan& plan) {
        if (spec.layers) return;
        std::vector<int32_t> first_visits;
        std::set<int32_t> seen;
        for (const int32_t layer : layers_of(plan)) {
            if (seen.insert(layer).second) first_visits.push_back(layer);
        }
        std::vector<int32_t> expected;
        for (int32_t layer = 0; layer < shape.n_layer; ++layer) {
            const bool skipped = std::ranges::any_of(spec.skip, [&](const LayerItem& item) {
                const int64_t a = item.first.value_or(0);
                const int64_t b = item.last.value_or(shape.n_layer - 1);
                return std::min(a, b) <= layer && layer <= std::max(a, b);
            });
            if (!skipped) expected.push_back(layer);
        }
        EXPECT_EQ(first_visits, expected);
    });
}

TEST(PlanProperty, SlotsFollowTheRoles) {
    for_each_plan([](const Spec&, const ModelShape& shape, const LayerPlan& plan) {
        std::set<int32_t> own;
        for (size_t i = 0; i < plan.size(); ++i) {
            const Pass& pass = plan[i];
            const LayerShape& layer = shape.layers[static_cast<size_t>(pass.layer)];
            if (!pass.attention) {
                EXPECT_EQ(pass.slot, no_slot);
                EXPECT_NE(layer.role, Role::recurrent);
                continue;
            }
            ASSERT_GE(pass.slot, 0);
            const Slot& slot = plan.slots()[static_cast<size_t>(pass.slot)];
            if (layer.role == Role::shared_kv_attention) {
                EXPECT_EQ(slot.layer, layer.kv_owner);
                EXPECT_LT(slot.pass, static_cast<int32_t>(i));
                continue;
            }
            EXPECT_EQ(slot, (Slot{.layer = pass.layer, .pass = static_cast<int32_t>(i)}));
            EXPECT_TRUE(own.insert(pass.slot).second);
        }
        EXPECT_EQ(own.size(), plan.slots().size());
    });
}

TEST(PlanProperty, CostsAreTheSumOfTheSlots) {
    const CacheSettings settings{.n_ctx = 700, .n_seq = 2, .n_ubatch = 64};
    for_each_plan([&](const Spec&, const ModelShape& shape, const LayerPlan& plan) {
        uint64_t bytes = 0;
        for (const Slot& slot : plan.slots()) bytes += slot_bytes(slot, shape, settings);
        const PlanCost cost = plan_cost(plan, shape, settings);
        EXPECT_EQ(cost.cache_bytes(), bytes);
        const PlanCost identity = plan_cost(resolve("", shape), shape, settings);
        EXPECT_LE(cost.weight_resident_bytes, identity.weight_resident_bytes);
        if (plan.is_identity()) {
            EXPECT_EQ(cost, identity);
        }
    });
}

TEST(PlanProperty, TheOrderOfDisjointBlocksMakesNoDifference) {
    for (uint32_t seed = 0; seed < n_seed; ++seed) {
        std::mt19937 random(seed);
        const auto below = [&](uint32_t n) { return static_cast<int64_t>(random() % n); };
        std::vector<RepeatBlock> blocks;
        for (int64_t at = 0;;) {
            const int64_t begin = at + below(5);
            at = begin + 1 + below(6);
            if (at > 40) break;
            blocks.push_back({.begin = begin, .end = at, .traversals = 1 + below(3)});
        }
        const Spec in_order{.repeat = blocks};
        std::shuffle(blocks.begin(), blocks.end(), random);
        const Spec shuffled{.repeat = blocks};
        SCOPED_TRACE(fmt::format("seed {}: {}", seed, print_spec(shuffled)));
        const ModelShape shape = hybrid_shape({.n_layer = 40});
        EXPECT_EQ(LayerPlan::resolve(in_order, shape), LayerPlan::resolve(shuffled, shape));
    }
}

}  // namespace
}  // namespace pleat
