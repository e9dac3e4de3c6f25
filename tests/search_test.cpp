#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/pleat_tool.h"
#include "support/temp_dir.h"

// search as a user calls it, on the model that ships.
namespace pleat::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
const std::string text_file = PLEAT_MODELS_DIR "/demo-text.txt";

Words search_words(const Words& more) {
    Words words{"search", model,    "--text",   text_file,     "-t",      "1",         "-c",
                "64",     "-q",     "--chunks", "8",           "--width", "3",         "--depth",
                "2",      "--pool", "4",        "--max-block", "1",       "--max-new", "6"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

std::string error_of(const Words& words) {
    const ToolRun result = run_pleat(words);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    return result.err;
}

TEST(SearchCommand, ScoresPlansAsTheyScoreAlone) {
    const TempDir dir;
    const ToolRun found =
        run_pleat(search_words({"--validation", "0", "--report", dir.file("r.html")}));
    ASSERT_EQ(found.status, 0) << found.err;
    EXPECT_THAT(found.out, HasSubstr("32 plans tried"));  // 10 blocks, 16 drops, then 6
    EXPECT_THAT(read_bytes(dir.file("r.html")), HasSubstr("<html"));
    const json rows = json::parse(read_bytes(dir.file("r.json")))["rows"];
    ASSERT_EQ(rows.size(), 32U);
    for (const size_t i : {size_t{0}, rows.size() - 1}) {
        const std::string plan = "layers:" + rows[i]["canonical"].get<std::string>();
        SCOPED_TRACE(plan);
        const ToolRun alone = run_pleat({"eval", model, "--text", text_file, "-t", "1", "-c", "64",
                                         "-q", "--chunks", "8", "--json", "--spec", plan});
        ASSERT_EQ(alone.status, 0) << alone.err;
        const json scores = json::parse(alone.out)["results"][1]["scores"];
        EXPECT_NEAR(rows[i]["scores"][0]["selection"]["value"], scores["nll"]["value"], 1e-12);
    }
}

TEST(SearchCommand, GivesTheSameWhenItWasKilledOnTheWay) {
    const TempDir dir;
    const std::string profile = dir.file("p.json");
    const std::string journal = dir.file("p.journal.jsonl");
    const Words words = search_words({"--max-kv", "1.0", "--profile", profile});
    ASSERT_EQ(run_pleat(words).status, 0);
    const std::string whole = read_bytes(journal);
    json expected = json::parse(read_bytes(profile));
    expected.erase("provenance");
    EXPECT_EQ(expected["n_plans_tried"], 32);
    EXPECT_TRUE(expected["measures"][0].contains("validation"));
    EXPECT_EQ(run_pleat({"plan", model, "--plan", profile, "--strict-profile"}).status, 0);

    for (const size_t part : {whole.size() / 3, whole.size() - 200}) {
        std::filesystem::remove(journal);
        dir.file_with("p.journal.jsonl", whole.substr(0, part));
        ASSERT_EQ(run_pleat(words).status, 0);
        EXPECT_EQ(read_bytes(journal), whole);
        json found = json::parse(read_bytes(profile));
        found.erase("provenance");
        EXPECT_EQ(found, expected);
    }
}

TEST(SearchCommand, AsksAHybridForRetrievalUnlessToldNot) {
    const TempDir dir;
    const auto profile_of = [&](const std::string& path, const Words& more) {
        Words words{"search", path, "--text", text_file, "-t", "1", "-q", "--depth", "1"};
        words.insert(words.end(), {"-c", "64", "--chunks", "8", "--max-block", "1", "--profile",
                                   dir.file("p.json"), "--journal", dir.file("j.jsonl")});
        words.insert(words.end(), more.begin(), more.end());
        const ToolRun run = run_pleat(words);
        EXPECT_EQ(run.status, 0) << run.err;
        std::filesystem::remove(dir.file("j.jsonl"));
        return json::parse(read_bytes(dir.file("p.json")));
    };
    const auto names_of = [](const json& profile) {
        Words names;
        for (const json& it : profile["measures"]) names.push_back(it["name"]);
        return names;
    };
    const std::string hybrid = PLEAT_MODELS_DIR "/pleat-demo-qwen35-12L-q4_0.gguf";
    const json asked = profile_of(hybrid, {"--retrieval-questions", "8"});
    EXPECT_THAT(names_of(asked), testing::ElementsAre("nll", "kl", "top1", "exact:retrieval",
                                                      "answer_nll:retrieval"));
    EXPECT_EQ(asked["data"].back()["name"], "retrieval (generated)");
    // They have no say in the order.
    EXPECT_EQ(asked["settings"]["rank_by"], "nll");
    const Words text_only{"nll", "kl", "top1"};
    EXPECT_EQ(names_of(profile_of(hybrid, {"--no-retrieval"})), text_only);
    EXPECT_EQ(names_of(profile_of(model, {})), text_only);
}

TEST(SearchCommand, SaysWhatIsWrongInOneLine) {
    EXPECT_THAT(error_of({"search", model}), HasSubstr("nothing to score on"));
    EXPECT_THAT(error_of(search_words({"--max-kv", "0"})), HasSubstr("a ratio above 0"));
    EXPECT_THAT(error_of(search_words({"--width", "0"})), HasSubstr("\"0\" is not a whole number"));
    EXPECT_EQ(error_of(search_words({"--rank-by", "luck"})),
              "pleat: --rank-by luck: the measures are nll, kl, top1\n");
    EXPECT_THAT(error_of(search_words({"--report", "x.html", "--profile", "x.json"})),
                HasSubstr("is where --profile goes"));
}

TEST(SearchCommand, WarnsAndKeepsTheNearestWhereNothingIsWithinTheBudget) {
    const TempDir dir;
    const std::string profile = dir.file("p.json");
    const Words words = search_words({"--depth", "1", "--max-kv", "50%"});
    const ToolRun shown = run_pleat(words);
    EXPECT_EQ(shown.status, 0);
    Words more = words;
    more.insert(more.end(), {"--profile", profile, "--report", dir.file("r.html")});
    const ToolRun kept = run_pleat(more);
    EXPECT_EQ(kept.status, 0);
    EXPECT_EQ(kept.err, shown.err);
    EXPECT_THAT(kept.err, HasSubstr("warning: no plan is within the budget: asked --max-kv 0.5, "
                                    "reached 0.938 with --drop-attention"));
    EXPECT_THAT(kept.err, HasSubstr("a greater --depth may reach further\n"));
    const json found = json::parse(read_bytes(profile));
    EXPECT_THAT(found["notes"].back(), HasSubstr("asked --max-kv 0.5, reached 0.938"));
    const json& validation = found["measures"][0]["validation"];
    EXPECT_TRUE(validation.contains("plan")) << found;
    EXPECT_THAT(json::parse(read_bytes(dir.file("r.json")))["notes"],
                testing::Contains(HasSubstr("Holm's correction over all 26 plans")));
}

TEST(SearchCommand, ListsWhatItsBudgetAllowsFirst) {
    const TempDir dir;
    ASSERT_EQ(run_pleat(search_words({"--max-compute", "100%", "--validation", "0", "--report",
                                      dir.file("r.html")}))
                  .status,
              0);
    const json rows = json::parse(read_bytes(dir.file("r.json")))["rows"];
    const auto over = [](const json& row) { return row["compute_ratio"] > 1.0; };
    EXPECT_FALSE(over(rows.front()));
    EXPECT_TRUE(over(rows.back()));
    EXPECT_TRUE(
        std::is_partitioned(rows.begin(), rows.end(), [&](const json& row) { return !over(row); }));
}

}  // namespace
}  // namespace pleat::test
