#include "lab/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/test_shapes.h"
#include "support/temp_dir.h"

namespace pleat {
namespace {

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
    EXPECT_EQ(data.measures[1].identity.selection->value, 70);
    EXPECT_THAT(flags_of(data), ElementsAre("--repeat-layers \"1,3\"", "--skip-layers \"2\"",
                                            "--repeat-layers \"0,2\""));
    EXPECT_EQ(score_of(data, 0, 1), 71.5);
    EXPECT_THAT(data.notes.back(),
                HasSubstr("1 entries cannot be said as a plan and are left out."));
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
    EXPECT_EQ(error("{\"is_baseline\": true}\n{\"dup\n"), "r.json: line 2 is not valid JSON");
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
