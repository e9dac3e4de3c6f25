#include "lab/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "lab/report_for_test.h"
#include "lab/terminal_heatmap.h"
#include "support/temp_dir.h"

namespace pleat {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

ReportRow row(double cost, double loss, double points) {
    return {.flag = "--skip-layers \"1\"",
            .compute_ratio = cost,
            .scores = {{.selection = Score{loss, 0.1}}, {.selection = Score{points, 0.1}}}};
}

ReportData two_measures(std::vector<ReportRow> rows) {
    return {.title = "t",
            .model = "m",
            .measures = {{.measure = {.name = "nll"}, .identity = {.selection = Score{2.0, 0.1}}},
                         {.measure = {.name = "points", .higher_is_better = true},
                          .identity = {.selection = Score{0.5, 0.1}}}},
            .rows = std::move(rows)};
}

TEST(Balanced, SumsStandardScoresOfTheDifferences) {
    // Gains: nll 1 and -1 (mean 0, spread 1); points 0.2 and 0.1 (mean 0.15, spread 0.05).
    const Balanced it = balanced_scores(two_measures({row(1, 1.0, 0.7), row(1, 3.0, 0.6)}));
    EXPECT_NEAR(*it.rows[0], 2.0, 1e-12);
    EXPECT_NEAR(*it.rows[1], -2.0, 1e-12);
    EXPECT_NEAR(it.identity, -3.0, 1e-12);
}

TEST(Balanced, TakesNoSpreadForOne) {
    const Balanced it = balanced_scores(two_measures({row(1, 1.0, 0.5), row(1, 1.0, 0.5)}));
    EXPECT_THAT(it.rows, ElementsAre(0.0, 0.0));
    EXPECT_EQ(it.identity, -1.0);
}

TEST(Balanced, LeavesOutRowsThatLackAMeasure) {
    ReportData data = two_measures({row(1, 1.0, 0.7), row(1, 3.0, 0.6), row(1, 9.0, 0.0)});
    data.rows[2].scores[1].selection.reset();
    const Balanced it = balanced_scores(data);
    EXPECT_NEAR(*it.rows[0], 2.0, 1e-12);
    EXPECT_EQ(it.rows[2], std::nullopt);
    data.rows[1].scores[0].selection->value = std::numeric_limits<double>::quiet_NaN();
    EXPECT_EQ(balanced_scores(data).rows[1], std::nullopt);
}

ReportData with_measures(const std::vector<std::string>& names) {
    ReportData data{.title = "t", .model = "m"};
    ReportRow one{.flag = "a"};
    for (const std::string& name : names) {
        data.measures.push_back(
            {.measure = {.name = name}, .identity = {.selection = Score{0.5, 0.1}}});
        one.scores.push_back({.selection = Score{0.25, 0.1}});
    }
    data.rows = {one, one, one};
    return data;
}

TEST(Balanced, SumsWhatAPlanCanBeBetterIn) {
    const auto summed = [](const std::vector<std::string>& names) {
        std::vector<std::string> found;
        const ReportData data = with_measures(names);
        for (const size_t m : balanced_scores(data).measures) {
            found.push_back(data.measures[m].measure.name);
        }
        return found;
    };
    EXPECT_THAT(summed({"nll", "kl", "top1"}), ElementsAre()) << "one kind of quality";
    EXPECT_THAT(summed({"nll", "kl", "top1", "exact:logic", "answer_nll:logic"}),
                ElementsAre("nll", "exact:logic", "answer_nll:logic"));
    EXPECT_THAT(summed({"probe:a", "exact:a", "parsed:a", "length_ok:a", "cut:a"}), ElementsAre());
    EXPECT_THAT(summed({"nll", "probe:eq", "nearness:eq", "confidence:eq", "parsed:eq"}),
                ElementsAre("nll", "probe:eq", "nearness:eq"));
    EXPECT_THAT(summed({"nll:a", "kl:a", "top1:a", "nll:b", "kl:b", "top1:b"}),
                ElementsAre("nll:a", "nll:b"));
    EXPECT_THAT(summed({"math", "eq", "reasoning"}), ElementsAre("math", "eq")) << "as RYS does";
    EXPECT_THAT(summed({"nll", "math_16", "eq_16"}), ElementsAre("math_16", "eq_16"));
    EXPECT_THAT(summed({"math (a.json)", "math (b.json)", "eq"}),
                ElementsAre("math (a.json)", "math (b.json)", "eq"));
}

TEST(Balanced, KnowsOnlyThePlansThatItIsAbout) {
    ReportData data =
        two_measures({row(1, 1.0, 0.7), row(1, 3.0, 0.6), row(1, 9, 0.1), row(1, 9, 0.1)});
    data.rows[2].in_balanced = false;
    data.rows[3].set_aside = "stopped early";
    const Balanced it = balanced_scores(data);
    EXPECT_NEAR(*it.rows[0], 2.0, 1e-12);
    EXPECT_EQ(it.rows[2], std::nullopt);
    EXPECT_EQ(it.rows[3], std::nullopt);
    EXPECT_EQ(json::parse(report_json(data))["rows"][2]["in_balanced"], false);
    // One kind of quality: neither a score nor a map.
    data.measures[1].measure.name = "top1";
    const json without = json::parse(report_json(data));
    EXPECT_EQ(without["balanced_measures"].size(), 0U);
    EXPECT_FALSE(without["rows"][0].contains("balanced"));
}

TEST(ParetoFront, IsWhatNothingBeats) {
    const ReportData data = two_measures({row(1.2, 1.8, 0), row(1.1, 1.9, 0), row(1.3, 1.8, 0),
                                          row(1.05, 2.5, 0), row(0.9, 2.2, 0), row(1.1, 1.9, 0)});
    // Row 3 costs more than the identity plan and is worse; row 2 costs more than row 0.
    EXPECT_THAT(pareto_front(data, 0), ElementsAre(4, 1, 5, 0));
}

TEST(ParetoFront, KnowsWhichWayIsBetter) {
    const ReportData data = two_measures({row(1.2, 0, 0.9), row(1.1, 0, 0.4), row(1.1, 0, 0.6)});
    EXPECT_THAT(pareto_front(data, 1), ElementsAre(2, 0));
    EXPECT_THAT(pareto_front(data, 1, &ReportRow::kv_ratio), ElementsAre(0));
}

TEST(RowsSetAside, AreShownButOnNoFrontAndNeverTheBest) {
    ReportData data = two_measures({row(1.2, 1.8, 0), row(1.1, 1.0, 0), row(1.3, 1.7, 0)});
    for (ReportRow& it : data.rows) {
        it.begin = 0;
        it.end = 1;
    }
    EXPECT_THAT(pareto_front(data, 0), ElementsAre(1));
    EXPECT_NEAR(heatmaps(data)[0].scale_up, 1.0, 1e-12);
    data.rows[1].set_aside = "stopped early: 8 of 24 items";
    EXPECT_THAT(pareto_front(data, 0), ElementsAre(0, 2));
    const Heatmap map = heatmaps(data)[0];
    EXPECT_EQ(map.cells.size(), 3U);
    EXPECT_NEAR(map.scale_up, 0.3, 1e-12);
    const json rows = json::parse(report_json(data))["rows"];
    EXPECT_EQ(rows[1]["set_aside"], "stopped early: 8 of 24 items");
    EXPECT_FALSE(rows[0].contains("set_aside"));
}

TEST(Heatmaps, ShowTheBestGainInFullAndDoNotDrownInBrokenPlans) {
    std::vector<ReportRow> rows;
    for (int i = 0; i < 9; ++i) {
        rows.push_back(row(1, 2.5, 0.5));
        rows.back().begin = i;
        rows.back().end = i + 1;
    }
    rows[0].scores[0].selection->value = 1.9;
    rows[1].scores[0].selection->value = 1000;
    const std::vector<Heatmap> maps = heatmaps(two_measures(rows));
    ASSERT_EQ(maps.size(), 3U);
    EXPECT_NEAR(maps[0].scale_up, 0.1, 1e-12);
    EXPECT_NEAR(maps[0].scale_down, 0.4, 1e-12);
    EXPECT_NEAR(maps[0].cells[0].gain, 0.1, 1e-12);
    EXPECT_EQ(maps[1].scale_up, 1.0) << "everything like the identity plan";
    EXPECT_EQ(maps[2].name, "balanced");
}

TEST(Heatmaps, EndTheirColoursAtWhatCanBe) {
    const auto scales = [](const std::string& unit, bool higher, double identity, double value) {
        ReportData data{.title = "t", .model = "m", .n_layer = 2};
        data.measures = {{.measure = {.name = "it", .higher_is_better = higher},
                          .unit = unit,
                          .identity = {.selection = Score{identity, 0}}}};
        data.rows = {{.begin = 0, .end = 1, .scores = {{.selection = Score{value, 0}}}}};
        const Heatmap map = heatmaps(data)[0];
        return std::pair(map.scale_up, map.scale_down);
    };
    EXPECT_EQ(scales("nats per token", false, 0.0, 0.066), std::pair(0.0, 0.066)) << "kl";
    EXPECT_EQ(scales("0 to 1", true, 1.0, 0.875), std::pair(0.0, 0.125)) << "top1";
    EXPECT_EQ(scales("0 to 1", true, 0.125, 0.875), std::pair(0.75, 0.125));
    EXPECT_EQ(scales("0 to 1", true, 0.75, 0.75), std::pair(0.25, 0.75)) << "nothing differs";
    EXPECT_EQ(scales("", true, 1.0, 0.875), std::pair(0.125, 0.125)) << "nobody knows";
}

TEST(ReportJson, HoldsTheDataAndWhatWasComputed) {
    ReportData data = made_up_scan(6);
    data.rows[3].scores[0].selection->value = std::numeric_limits<double>::infinity();
    const json it = json::parse(report_json(data));
    EXPECT_EQ(it["pleat_report"], 1);
    EXPECT_EQ(it["rows"].size(), 21U);
    EXPECT_EQ(it["rows"][1]["begin"], 0);
    EXPECT_EQ(it["rows"][1]["end"], 2);
    EXPECT_EQ(it["rows"][1]["scores"][0]["selection"]["value"],
              data.rows[1].scores[0].selection->value);
    EXPECT_FALSE(it["rows"][3]["scores"][0]["selection"].contains("value"));
    EXPECT_EQ(it["heatmaps"][0]["cells"].size(), 20U);
    EXPECT_EQ(it["heatmaps"].size(), 3U);
    EXPECT_EQ(it["pareto_fronts"][1]["compute_ratio"], json(pareto_front(data, 1)));
    EXPECT_EQ(it["settings"][0], json({{"name", "context"}, {"value", "512 tokens"}}));
}

TEST(ReportHtml, NamesNoOtherPlace) {
    const std::string page = report_html(made_up_scan(6));
    EXPECT_THAT(page, HasSubstr("Content-Security-Policy"));
    EXPECT_THAT(page, HasSubstr("<title>Scan of repeated blocks</title>"));
    EXPECT_THAT(page, Not(HasSubstr("{{")));
    EXPECT_THAT(page, Not(HasSubstr("https:")));
    EXPECT_THAT(page, Not(HasSubstr("src=")));
    EXPECT_THAT(page, Not(HasSubstr("tiny </script>"))) << "data must not end the script";
}

TEST(Report, IsWrittenAsJsonAndHtml) {
    const TempDir dir;
    const ReportData data = made_up_scan(3);
    write_report(dir.file("scan"), data);
    EXPECT_EQ(read_bytes(dir.file("scan.json")), report_json(data));
    EXPECT_EQ(read_bytes(dir.file("scan.html")), report_html(data));
}

ReportData three_layers() {
    ReportData data{.title = "t", .model = "m", .n_layer = 3};
    data.measures = {{.measure = {.name = "nll"}, .identity = {.selection = Score{2.0, 0.1}}}};
    const auto add = [&](int32_t begin, int32_t end, double value) {
        data.rows.push_back(
            {.begin = begin, .end = end, .scores = {{.selection = Score{value, 0.1}}}});
    };
    add(0, 1, 2.4);
    add(0, 2, 2.0);
    add(1, 2, 1.8);
    add(2, 3, 2.1);
    add(0, 3, 99.0);
    return data;
}

TEST(TerminalHeatmap, IsDigitsWhereThereAreNoColours) {
    const ReportData data = three_layers();
    EXPECT_EQ(terminal_heatmap(data, heatmaps(data)[0], HeatmapStyle::plain),
              "nll: 5 is the identity's 2, 9 -0.2 from it or better, 1 +0.4 or worse; begin "
              "downwards, end to the right\n"
              " end 123\n"
              "   0 151\n"
              "   1  9\n"
              "   2   4\n");
}

TEST(TerminalHeatmap, NamesNoColourThatNothingCanHave) {
    ReportData data = three_layers();
    data.measures[0] = {.measure = {.name = "kl"},
                        .unit = "nats per token",
                        .identity = {.selection = Score{0.0, 0.0}}};
    EXPECT_THAT(terminal_heatmap(data, heatmaps(data)[0], HeatmapStyle::plain),
                StartsWith("kl: 5 is the identity's 0, 1 +2.1 or worse; begin"));
}

TEST(TerminalHeatmap, NumbersItsColumnsFromTopToBottom) {
    const ReportData data = made_up_scan(12);
    EXPECT_THAT(terminal_heatmap(data, heatmaps(data)[0], HeatmapStyle::plain),
                HasSubstr("\n              111\n end 123456789012\n   0 "));
}

TEST(TerminalHeatmap, JoinsCellsWhereItIsTooWide) {
    const ReportData data = made_up_scan(64);
    const std::string map = terminal_heatmap(data, heatmaps(data)[0], HeatmapStyle::plain, 32);
    EXPECT_THAT(map, HasSubstr(", 2 layers a cell\n"));
    EXPECT_THAT(map, HasSubstr("\n end 2468024680"));
    EXPECT_EQ(std::ranges::count(map, '\n'), 35);
}

TEST(TerminalHeatmap, PutsTwoCellsIntoACharacter) {
    const ReportData data = three_layers();
    const std::string map = terminal_heatmap(data, heatmaps(data)[0], HeatmapStyle::ansi);
    EXPECT_THAT(map, HasSubstr("\x1b[38;2;228;228;228m\x1b[48;2;24;100;190m\u2580\x1b[0m"));
    EXPECT_THAT(map, HasSubstr("\x1b[38;2;217;95;14m\u2580\x1b[0m"));
    EXPECT_EQ(std::ranges::count(map, '\n'), 4);
}

}  // namespace
}  // namespace pleat
