#include "lab/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "lab/report_for_test.h"
#include "plan/test_shapes.h"
#include "support/temp_dir.h"

namespace pleat {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> flags_of(const ReportData& data) {
    std::vector<std::string> flags;
    for (const ReportRow& row : data.rows) flags.push_back(row.flag);
    return flags;
}

double score_of(const ReportData& data, size_t row, size_t measure) {
    return data.rows.at(row).scores.at(measure).selection.value().value;
}

TEST(ImportRys, ReadsADictionaryOfPaths) {
    const ReportData data = import_text(
        R"json({"(0, 1, 2, 3)": 0.5, "(0, 1, 2, 1, 2, 3)": {"score": 0.625, "responses": []},
            "layers:0,3": 0.25})json",
        "dir/math_results.json");
    EXPECT_EQ(data.n_layer, 4);
    EXPECT_EQ(data.measures[0].measure, (Measure{"math", true}));
    EXPECT_EQ(data.measures[0].identity.selection->value, 0.5);
    EXPECT_THAT(flags_of(data), ElementsAre("--repeat-layers \"1,3\"", "--layers \"0,3\""));
    EXPECT_EQ(data.rows[0].canonical, "0..2,1..3");
    EXPECT_EQ(data.rows[0].begin, 1);
    EXPECT_EQ(data.rows[0].end, 3);
    EXPECT_EQ(data.rows[0].compute_ratio, 1.5);
    EXPECT_EQ(score_of(data, 0, 0), 0.625);
    EXPECT_EQ(data.rows[1].begin, std::nullopt);
}

TEST(ImportRys, ReadsPairsAsBlocksAndCombinedValues) {
    const ReportData data = import_text(
        R"json([{"config_key": [0, 0], "math_score": 0.5, "eq_score": 0.75, "combined_score": 0.625},
            {"config_key": [2, 4], "math_score": 0.625, "eq_score": null},
            {"config_spec": "blocks:1,2;0,1", "math_score": 0.125, "eq_score": 0.25}])json",
        "all.json", 4);
    EXPECT_EQ(data.measures.size(), 2U);
    EXPECT_EQ(data.measures[1].identity.selection->value, 0.75);
    EXPECT_THAT(flags_of(data),
                ElementsAre("--repeat-layers \"2,4\"", "--repeat-layers \"1,2;0,1\""));
    EXPECT_EQ(data.rows[0].scores[1].selection, std::nullopt);
    EXPECT_EQ(score_of(data, 1, 1), 0.25);
}

TEST(ImportRys, PutsBlocksWhereThePlanLanguageDoes) {
    const ReportData data =
        import_text(R"json({"39,45;24,35;9,20;43,46": 0.5, "2,7;2,7": 0.5})json", "s.json", 64);
    for (const ReportRow& row : data.rows) {
        const std::string spec = row.flag.substr(std::string("--repeat-layers \"").size());
        EXPECT_EQ(row.canonical,
                  resolve(spec.substr(0, spec.size() - 1), llama_shape()).canonical());
    }
}

TEST(ImportCircuitFinder, ReadsJsonLines) {
    const ReportData data = import_text(
        "{\"is_baseline\":true,\"dup_start\":-1,\"dup_end\":-1,\"math_score\":0.5,\"eq_score\":70}"
        "\n"
        "{\"dup_start\":1,\"dup_end\":3,\"n_dup_layers\":2,\"math_score\":0.75,\"eq_score\":71.5}\n"
        "\n"
        "{\"prune_start\":2,\"prune_end\":3,\"math_score\":0.25,\"eq_score\":60}\n"
        "{\"label\":\"x\",\"mode\":\"dup\",\"start\":0,\"end\":2,\"math_score\":0.125}\n"
        "{\"mode\":\"replace-next\",\"start\":0,\"end\":2,\"math_score\":0.5}\n",
        "results.jsonl", 4);
    EXPECT_EQ(data.measures[0].identity.selection->value, 0.5);
    EXPECT_EQ(data.measures[1].identity.selection->value, 0.7);
    EXPECT_THAT(flags_of(data), ElementsAre("--repeat-layers \"1,3\"", "--skip-layers \"2\"",
                                            "--repeat-layers \"0,2\""));
    EXPECT_EQ(score_of(data, 0, 1), 0.715);
    EXPECT_THAT(data.notes, ElementsAre("eq is from 0 to 100 there and was divided by 100",
                                        "left out, since no plan says them: 1 of mode replace-next",
                                        HasSubstr("without standard errors")));
    EXPECT_THAT(data.rows[1].in_balanced, false) << "a prune line";
}

TEST(ImportCircuitFinder, BalancesMathAndEqOfRepeatsAsRysDoes) {
    const ReportData data = import_text(
        R"({"is_baseline":true,"math_score":0.5,"eq_score":70,"reasoning_score":0.5}
{"dup_start":1,"dup_end":3,"math_score":0.75,"eq_score":80,"reasoning_score":0.1}
{"dup_start":2,"dup_end":3,"math_score":0.25,"eq_score":60,"reasoning_score":0.9}
{"dup_start":0,"dup_end":3,"math_score":0.5,"eq_score":70,"reasoning_score":0.9}
{"prune_start":2,"prune_end":3,"math_score":0,"eq_score":0,"reasoning_score":0}
)",
        "results.jsonl", 4);
    const Balanced balanced = balanced_scores(data);
    EXPECT_THAT(balanced.measures, ElementsAre(0, 1));
    // dM 0.25, -0.25, 0 and dE 0.1, -0.1, 0: each z is sqrt(3/2), -sqrt(3/2), 0.
    EXPECT_NEAR(balanced.rows[0].value(), std::sqrt(6.0), 1e-9);
    EXPECT_NEAR(balanced.rows[1].value(), -std::sqrt(6.0), 1e-9);
    EXPECT_NEAR(balanced.rows[2].value(), 0.0, 1e-9);
    EXPECT_EQ(balanced.rows[3], std::nullopt);
}

TEST(ImportCircuitFinder, ReadsInclusiveRanges) {
    const ReportData data = import_text(
        R"json({"0..5,3..15": 0.5, "..3, 2..": 0.25, "15..12": 0.5, "layers:0..3,7,8": 1})json",
        "r.json", 16);
    std::vector<std::string> plans;
    for (const ReportRow& row : data.rows) plans.push_back(row.canonical);
    EXPECT_THAT(plans, ElementsAre("0..5,3..15", "0..3,2..15", "15,14,13,12", "0..3,7..8"));
    EXPECT_EQ(data.rows[0].flag, "--repeat-layers \"3,6\"");
    EXPECT_EQ(error_of([] { import_text(R"json({"..": 1})json", "r.json", 4); }),
              "r.json, ..: .. is no plan of ranges of layers");
    EXPECT_THAT(import_text(R"json({"0..5": 1, "0,1": 1})json", "r.json", 4).notes.front(),
                HasSubstr("1 of blocks that 4 layers do not have"));
}

TEST(Import, PassesOverWhatAWriterLeftUnfinished) {
    const std::string whole =
        "{\"dup_start\": 1, \"dup_end\": 2, \"math_score\": 0.5}\n"
        "{\"dup_start\": 1, \"dup_end\": 3, \"math_score\": NaN, \"eq_score\": -Infinity}\n"
        "{\"dup_start\": 2, \"dup_end\": 3, \"math_score\": 0.25, \"text\": \"NaN \\\"\"}\n";
    const ReportData data = import_text(whole + "{\"dup_start\": 3, \"du", "r.jsonl", 4);
    EXPECT_THAT(flags_of(data), ElementsAre("--repeat-layers \"1,2\"", "--repeat-layers \"2,3\""));
    EXPECT_THAT(data.notes, ElementsAre("the last line is cut off and left out",
                                        "2 values that are no numbers (NaN, Infinity) are left out",
                                        HasSubstr("without standard errors")));
    const ReportData dictionary =
        import_text(R"json({"1,2": NaN, "2,3": {"score": Infinity}, "1,3": 0.5})json", "r.json", 4);
    EXPECT_THAT(flags_of(dictionary), ElementsAre("--repeat-layers \"1,3\""));
}

TEST(Import, BringsEachFilesEqToOneScale) {
    const TempDir dir;
    const std::string rys =
        dir.file_with("eq_16_results.json", R"json({"0,0": 0.75, "1,3": 0.5})json");
    const std::string circuit = dir.file_with(
        "lcf.jsonl",
        "{\"is_baseline\": true, \"math_score\": 0.5, \"eq_score\": 0}\n"
        "{\"dup_start\": 1, \"dup_end\": 3, \"math_score\": 0.5, \"eq_score\": 80}\n");
    const ReportData data = import_results({rys, circuit}, 4);
    ASSERT_EQ(data.measures.size(), 3U);
    EXPECT_EQ(score_of(data, 0, 0), 0.5);
    EXPECT_EQ(score_of(data, 0, 2), 0.8);
    EXPECT_EQ(data.measures[2].unit, "0 to 1");
    EXPECT_THAT(data.notes,
                Contains("lcf.jsonl: eq is from 0 to 100 there and was divided by 100"));
    // Math is a share everywhere: a great number stays what it is.
    EXPECT_EQ(
        import_text(R"json({"1,2": 80})json", "math.json", 4).rows[0].scores[0].selection->value,
        80);
}

TEST(Import, KeepsMeasuresApartThatDiffer) {
    const TempDir dir;
    std::filesystem::create_directories(dir.file("d1"));
    std::filesystem::create_directories(dir.file("d2"));
    const std::string first = dir.file_with("d1/math.json", R"json({"0,0": 0.5, "1,3": 0.75})json");
    const std::string second =
        dir.file_with("d2/math.json", R"json({"0,0": 0.5, "1,3": 0.625, "2,3": 0.25})json");
    const ReportData data = import_results({first, second}, 4);
    ASSERT_EQ(data.measures.size(), 2U);
    EXPECT_EQ(data.measures[0].measure.name, "math (d1/math.json)");
    EXPECT_EQ(data.measures[1].measure.name, "math (d2/math.json)");
    EXPECT_EQ(score_of(data, 0, 0), 0.75);
    EXPECT_EQ(score_of(data, 0, 1), 0.625);
    EXPECT_EQ(data.rows[1].scores[0].selection, std::nullopt);
    EXPECT_THAT(data.notes, Contains("math differs between d1/math.json, d2/math.json, so each has "
                                     "its own"));

    const std::string more = dir.file_with("d2/math.json", R"json({"0,0": 0.5, "2,3": 0.25})json");
    const ReportData one = import_results({first, more}, 4);
    ASSERT_EQ(one.measures.size(), 1U);
    EXPECT_EQ(score_of(one, 1, 0), 0.25);
    EXPECT_THAT(one.notes, Contains(HasSubstr("agree where they overlap")));
}

TEST(Import, SaysWhenAPlanComesAgainWithAnotherValue) {
    const ReportData data = import_text(
        R"json([{"key": [1, 2], "score": 0.5}, {"key": [1, 2], "score": 0.25}])json", "s.json", 4);
    EXPECT_EQ(score_of(data, 0, 0), 0.25);
    EXPECT_THAT(data.notes.front(), HasSubstr("1 values of plans that come again differ"));
}

TEST(ImportReport, GivesBackTheReport) {
    ReportData data = made_up_scan(6);
    data.rows[2].set_aside = "stopped early: 8 of 64 items";
    data.rows[4].in_balanced = false;
    data.rows[5].scores[1] = {};
    const ReportData found = import_text(report_json(data), "dir/scan.json");
    data.title = "scan.json";
    EXPECT_EQ(report_json(found), report_json(data));
}

TEST(ImportReport, StandsBesideOldResults) {
    const TempDir dir;
    const ReportData scan = made_up_scan(6);
    const std::string own = dir.file_with("new.json", report_json(scan));
    const std::string old =
        dir.file_with("old.json", R"json({"0,0": 0.5, "1,3": 0.75, "4,5;4,5": 0.625})json");
    for (const auto& paths : {std::vector{own, old}, std::vector{old, own}}) {
        const ReportData data = import_results(paths);
        EXPECT_EQ(data.rows.size(), 22U);
        EXPECT_EQ(data.measures.size(), 3U);
        EXPECT_EQ(data.model, scan.model);
        EXPECT_THAT(data.notes, Contains("new.json: Made up for a test."));
        const auto both = std::ranges::find(data.rows, "--repeat-layers \"1,3\"", &ReportRow::flag);
        ASSERT_NE(both, data.rows.end());
        const auto before =
            std::ranges::find(scan.rows, "--repeat-layers \"1,3\"", &ReportRow::flag);
        EXPECT_EQ(both->compute_ratio, before->compute_ratio) << "known better than from passes";
        size_t n_scores = 0;
        for (const ReportScore& it : both->scores) n_scores += it.selection ? 1 : 0;
        EXPECT_EQ(n_scores, 3U);
    }
    EXPECT_EQ(error_of([&] { import_results({own}, 8); }),
              own + ": of a model of 6 layers, and not of 8");
}

TEST(ImportReport, RefusesWhatIsNone) {
    const auto error = [](const std::string& text) {
        return error_of([&] { import_text(text, "r.json", 4); });
    };
    EXPECT_EQ(error(R"json({"pleat_report": 2})json"),
              "r.json: not a report as Pleat writes it: another version's");
    EXPECT_THAT(error(R"json({"pleat_report": 1, "title": "t"})json"),
                HasSubstr("r.json: not a report as Pleat writes it: [json.exception"));
    EXPECT_EQ(error("{\"pleat_journal\":1}\n{\"plan\":\"0..3\"}\n"),
              "r.json: a journal of Pleat; import the report of its scan (--report-json)");
}

TEST(Import, PutsFilesOfOneModelTogether) {
    const TempDir dir;
    const std::string math =
        dir.file_with("math_results.json", R"json({"0,0": 0.5, "1,3": 0.75})json");
    const std::string eq = dir.file_with("eq_results.json",
                                         R"json({"(0,1,2,3)": 0.25, "(0,1,2,1,2,3)": 0.375
})json");
    const ReportData data = import_results({math, eq});
    EXPECT_EQ(data.title, "math_results.json, eq_results.json");
    EXPECT_THAT(flags_of(data), ElementsAre("--repeat-layers \"1,3\""));
    EXPECT_EQ(score_of(data, 0, 0), 0.75);
    EXPECT_EQ(score_of(data, 0, 1), 0.375);
}

TEST(Import, RefusesWhatItCannotReadInOneLine) {
    const auto error = [](const std::string& text, const std::string& path = "r.json") {
        return error_of([&] { import_text(text, path, 4); });
    };
    const std::string pickle =
        ": a pickle, which is never read: to read one is to run the code in it; dump the "
        "dictionary as JSON, with its keys as texts";
    EXPECT_EQ(error("\x80\x04\x95 x"), "r.json" + pickle);
    EXPECT_EQ(error("(dp0\n"), "r.json" + pickle);
    EXPECT_EQ(error("{}", "scores.pkl"), "scores.pkl" + pickle);
    EXPECT_EQ(error(""), "r.json: the file is empty");
    EXPECT_EQ(error("{\"is_baseline\": true}\n\n{\"dup\n{}\n"), "r.json: line 3 is not valid JSON");
    EXPECT_EQ(error("{\n\"1,2\": 0.5,\n\"1,3\" 0.5\n}\n"), "r.json: line 3 is not valid JSON");
    EXPECT_EQ(error("{\"is_baseline\": true}\n\n[]\n"), "r.json, line 3: not an object");
    EXPECT_EQ(error("[1]"), "r.json, entry 1: not an object");
    EXPECT_EQ(error("[{}]"),
              "r.json, entry 1: no field names the layers (config_layers, layers, key, spec, "
              "dup_start, ...)");
    EXPECT_EQ(error(R"json({"a b": 1})json"), "r.json, a b: a b is no plan of RYS");
    EXPECT_EQ(error(R"json({"1,2": "x"})json"), "r.json, 1,2: neither a score nor an object");
    EXPECT_EQ(error(R"json({"1,2": {"score": "x"}})json"), "r.json, 1,2: the score r is no number");
    EXPECT_EQ(error(R"json([{"layers": [0, -1]}])json"),
              "r.json, entry 1: -1 is not the number of a layer");
    EXPECT_EQ(error(R"json({"dup_start": 1, "dup_end": 3, "n_dup_layers": 3})json"),
              "r.json, line 1: 3 layers are not those from 1 to before 3");
    EXPECT_EQ(error(std::string(1'000'000, '[')), "r.json: nested more than 64 levels deep");
    EXPECT_EQ(error_of([] { import_text(R"json({"1,2": 0.5})json", "r.json"); }),
              "r.json: no path is written out, so the number of layers is not known; say it");
}

}  // namespace
}  // namespace pleat
