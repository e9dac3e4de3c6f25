#include "lab/calibrate.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/pleat_tool.h"
#include "support/random_models.h"
#include "support/temp_dir.h"

// calibrate as a user calls it, on the models that ship.
namespace pleat::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using Words = std::vector<std::string>;

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
const std::string hybrid = PLEAT_MODELS_DIR "/pleat-demo-qwen35-12L-q4_0.gguf";
const std::string text_file = PLEAT_MODELS_DIR "/demo-text.txt";

Words calibrate_words(const std::string& path, const Words& more) {
    Words words{"calibrate", path, "--text",   text_file, "-t",         "1",
                "-c",        "64", "--chunks", "8",       "--no-speed", "-q"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
}

json json_of(Words words) {
    words.emplace_back("--json");
    const ToolRun result = run_pleat(words);
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out);
}

std::string error_of(const Words& words) {
    const ToolRun result = run_pleat(words);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    return result.err;
}

/// What two runs of one command have in common: all but when and with which flags.
json comparable(const std::string& profile) {
    json it = json::parse(read_bytes(profile));
    it.erase("provenance");
    return it;
}

TEST(CalibrateCommand, FindsDropsThatScoreAsTheyDoAlone) {
    const TempDir dir;
    const std::string profile = dir.file("p.json");
    const json found = json_of(
        calibrate_words(model, {"--max-loss", "2%", "--validation", "0", "--profile", profile}));
    const json& measures = found["profile"]["measures"];
    ASSERT_FALSE(found["profile"]["plan"].get<std::string>().empty());

    // All chunks choose, so eval scores the same items.
    const ToolRun alone = run_pleat({"eval", model, "--text", text_file, "-t", "1", "-c", "64",
                                     "--chunks", "8", "-q", "--plan", profile, "--json"});
    ASSERT_EQ(alone.status, 0) << alone.err;
    const json rows = json::parse(alone.out)["results"];
    for (const json& measure : measures) {
        const std::string name = measure["name"];
        SCOPED_TRACE(name);
        const json& selection = measure["selection"];
        EXPECT_NEAR(selection["plan"]["value"], rows[1]["scores"][name]["value"], 1e-12);
        EXPECT_NEAR(selection["identity"]["value"], rows[0]["scores"][name]["value"], 1e-12);
    }
    // Every candidate of the first round, one by one.
    for (const json& candidate : found["rounds"][0]["candidates"]) {
        const int layer = candidate["layers"][0];
        if (layer % 8 != 0) continue;
        SCOPED_TRACE(layer);
        const ToolRun one =
            run_pleat({"eval", model, "--text", text_file, "-t", "1", "-c", "64", "--chunks", "8",
                       "-q", "--json", "--spec", fmt::format("drop:{}", layer)});
        const json scores = json::parse(one.out)["results"][1]["scores"];
        EXPECT_NEAR(candidate["perplexity_rise"],
                    std::expm1(scores["nll"]["difference"]["value"].get<double>()), 1e-12);
        EXPECT_NEAR(candidate["kl"], scores["kl"]["value"], 1e-12);
    }
    // The greedy choice: the least loss of each round, and the limit.
    for (const json& round : found["rounds"]) {
        std::vector<double> losses;
        for (const json& it : round["candidates"]) losses.push_back(it["perplexity_rise"]);
        const double least = *std::ranges::min_element(losses);
        if (round["chosen"].is_null()) {
            EXPECT_GT(least, 0.02);
        } else {
            EXPECT_EQ(losses.at(round["chosen"].get<size_t>()), least);
            EXPECT_LE(least, 0.02);
        }
    }
    const json& curve = found["profile"]["curve"];
    EXPECT_EQ(curve.back()["plan"], found["profile"]["plan"]);
    EXPECT_EQ(found["profile"]["similarity"].size(), 16U);
}

TEST(CalibrateCommand, GivesTheSameWhenItWasKilledOnTheWay) {
    const TempDir dir;
    // Chunks enough for two pieces.
    const Words words =
        calibrate_words(model, {"--keep-kv", "90%", "--chunks", "12", "--validation", "0.2",
                                "--profile", dir.file("p.json")});
    ASSERT_EQ(run_pleat(words).status, 0);
    const std::string journal = read_bytes(dir.file("p.journal.jsonl"));
    const json profile = comparable(dir.file("p.json"));

    // What a kill leaves at any moment: some whole records, and a part of one.
    std::vector<size_t> ends;
    for (size_t at = journal.find('\n'); at != std::string::npos; at = journal.find('\n', at + 1)) {
        ends.push_back(at + 1);
    }
    ASSERT_GT(ends.size(), 60U);  // two rounds of 31 plans, and the validation
    for (const size_t cut : {ends[0], ends[1] + 100, ends[40] + 1}) {
        SCOPED_TRACE(cut);
        std::filesystem::remove(dir.file("p.json"));
        std::filesystem::remove(dir.file("p.journal.jsonl"));
        dir.file_with("p.journal.jsonl", journal.substr(0, cut));
        ASSERT_EQ(run_pleat(words).status, 0);
        EXPECT_EQ(read_bytes(dir.file("p.journal.jsonl")), journal);
        EXPECT_EQ(comparable(dir.file("p.json")), profile);
    }
}

TEST(CalibrateCommand, CanBeInterrupted) {
    const TempDir dir;
    const Words words =
        calibrate_words(model, {"--keep-kv", "95%", "--profile", dir.file("p.json")});
    PleatProcess process(words);
    // Whenever the signal comes, before the journal is there or after the end.
    process.send(SIGINT);
    const ToolRun stopped = process.wait();
    EXPECT_THAT(stopped.status, testing::AnyOf(0, 130));
    ASSERT_EQ(run_pleat(words).status, 0);
    const std::string journal = read_bytes(dir.file("p.journal.jsonl"));
    std::filesystem::remove(dir.file("p.journal.jsonl"));
    ASSERT_EQ(run_pleat(words).status, 0);
    EXPECT_EQ(read_bytes(dir.file("p.journal.jsonl")), journal);
}

TEST(CalibrateCommand, AnswersAnotherLimitFromTheSameJournal) {
    const TempDir dir;
    const std::string journal = dir.file("j.jsonl");
    const json wide = json_of(calibrate_words(model, {"--keep-kv", "90%", "--journal", journal}));
    const std::string before = read_bytes(journal);
    const json tight = json_of(calibrate_words(model, {"--keep-kv", "95%", "--journal", journal}));
    EXPECT_EQ(tight["rounds"][0], wide["rounds"][0]);
    EXPECT_EQ(wide["profile"]["curve"].size(), 2U);  // 15 of 16 layers are more than 90 %
    EXPECT_EQ(tight["profile"]["curve"].size(), 1U);
    EXPECT_EQ(wide["stopped"], "the cache is as small as --keep-kv asks for");
    EXPECT_GT(read_bytes(journal).size(), before.size());  // another plan was checked
}

TEST(CalibrateCommand, AsksAHybridForRetrievalUnlessToldNot) {
    const json asked = json_of(calibrate_words(
        hybrid, {"--keep-kv", "70%", "--retrieval-questions", "12", "--validation", "0.4"}));
    std::vector<std::string> names;
    for (const json& it : asked["profile"]["measures"]) names.push_back(it["name"]);
    EXPECT_THAT(names, testing::Contains("answer_nll:retrieval"));
    const json not_asked = json_of(calibrate_words(hybrid, {"--keep-kv", "1%", "--no-retrieval"}));
    EXPECT_EQ(not_asked["profile"]["measures"].size(), 3U);
    // Layers 3, 7 and 11 have attention, and one of them keeps it.
    EXPECT_EQ(not_asked["rounds"][0]["candidates"].size(), 3U);
    EXPECT_EQ(not_asked["profile"]["curve"].size(), 2U);
    EXPECT_EQ(not_asked["stopped"],
              "no attention is left that may be dropped and would save something");
}

TEST(CalibrateCommand, WarnsOfWhatDoesNotHold) {
    const TempDir dir;
    const std::string profile = dir.file("p.json");
    const ToolRun found = run_pleat(calibrate_words(
        hybrid, {"--keep-kv", "0.01", "--kl", "0.01", "--no-retrieval", "--profile", profile}));
    EXPECT_EQ(found.status, 0);
    const std::string kv = "--keep-kv: asked 1 % of the K/V bytes, reached 33.33 %";
    EXPECT_THAT(found.err, HasSubstr("warning: " + kv + "\n"));
    EXPECT_THAT(found.err, HasSubstr("warning: --kl 0.01 does not hold on validation: KL 0.00"));
    EXPECT_THAT(found.out, HasSubstr(", does not survive\n"));
    EXPECT_THAT(found.out, HasSubstr("Holm's correction over all 5 plans\n"));
    EXPECT_THAT(json::parse(read_bytes(profile))["notes"], testing::Contains(kv));
}

TEST(CalibrateCommand, DropsTheOwnerOfSharedKvWithItsReaders) {
    for (const NamedModel& named : architecture_models()) {
        if (named.name != "gemma4_shared_kv") continue;
        RandomModel random = named.model;
        random.tokenizer = true;
        const json found = json_of(
            calibrate_words(make_model(random).path(), {"--keep-kv", "99%", "--no-retrieval"}));
        const int first_reader = random.n_layer - random.n_shared_kv;
        size_t n_groups = 0;
        for (const json& it : found["rounds"][0]["candidates"]) {
            EXPECT_LT(it["layers"][0], first_reader);
            n_groups += it["layers"].size() > 1 ? 1 : 0;
        }
        EXPECT_GT(n_groups, 0U);
        EXPECT_FALSE(found["profile"].contains("similarity"));
    }
}

TEST(CalibrateCommand, WritesAProfileThatOtherCommandsTake) {
    const TempDir dir;
    const std::string profile = dir.file("p.json");
    const ToolRun found =
        run_pleat(calibrate_words(model, {"--keep-kv", "95%", "--profile", profile}));
    ASSERT_EQ(found.status, 0) << found.err;
    EXPECT_THAT(found.out, HasSubstr("plan: --drop-attention"));
    EXPECT_EQ(run_pleat({"plan", model, "--plan", profile, "--strict-profile"}).status, 0);
    const json it = json::parse(read_bytes(profile));
    EXPECT_EQ(it["n_plans_tried"], 16);
    EXPECT_EQ(it["data"][0]["name"], "demo-text.txt");
    EXPECT_THAT(it["provenance"]["command"].get<std::string>(),
                HasSubstr("pleat calibrate " + model + " --text " + text_file));
    EXPECT_TRUE(it["measures"][0].contains("validation"));
}

TEST(CalibrateCommand, SaysWhatIsWrongInOneLine) {
    EXPECT_THAT(error_of({"calibrate", model}), HasSubstr("--text FILE"));
    EXPECT_EQ(error_of(calibrate_words(model, {"--max-loss", "1"})),
              "pleat: --max-loss 1: percent or times? Write 1% or 0.01, and 100% for all\n");
    EXPECT_EQ(error_of(calibrate_words(model, {"--max-loss", "1%%"})),
              "pleat: --max-loss 1%%: expected a percentage or a ratio of 0 or more, as 60% or "
              "0.6\n");
    EXPECT_THAT(error_of(calibrate_words(model, {"--keep-kv", "-5%"})), HasSubstr("--keep-kv -5%"));
    EXPECT_THAT(error_of(calibrate_words(model, {"--keep-kv", "100%"})),
                HasSubstr("less than 100%"));
    EXPECT_THAT(error_of(calibrate_words(model, {"--kl", "-1"})), HasSubstr("--kl -1"));
    EXPECT_THAT(error_of(calibrate_words(model, {"--retrieval", "--no-retrieval"})),
                HasSubstr("excludes"));
    EXPECT_THAT(error_of(calibrate_words(model, {"-c", "4096"})), HasSubstr("need at least 8192"));
    const TempDir dir;
    const std::string other = dir.file_with("j.jsonl", "not a journal\n");
    EXPECT_THAT(error_of(calibrate_words(model, {"--journal", other})), HasSubstr("j.jsonl"));
}

}  // namespace
}  // namespace pleat::test
