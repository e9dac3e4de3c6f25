#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "lab/statistics.h"
#include "support/pleat_tool.h"
#include "support/temp_dir.h"

// `pleat eval` and `pleat scan` as a user meets them.
namespace pleat::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
const std::string text = PLEAT_MODELS_DIR "/demo-text.txt";

ToolRun run_one_thread(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"-t", "1", "-q"});
    return run_pleat(arguments);
}

TEST(EvalCommand, GivesThePerplexityThatEachPlanHasAlone) {
    const ToolRun run = run_one_thread({"eval", model, "--text", text, "-c", "128", "--chunks", "6",
                                        "--spec", "6,9", "--spec", "drop:12", "--json"});
    ASSERT_EQ(run.status, 0) << run.err;
    const json results = json::parse(run.out)["results"];
    ASSERT_EQ(results.size(), 3U);
    const std::vector<std::vector<std::string>> flags{
        {}, {"--repeat-layers", "6,9"}, {"--drop-attention", "12"}};
    for (size_t i = 0; i < flags.size(); ++i) {
        std::vector<std::string> alone{"perplexity", model,      "-f", text,    "-c",
                                       "128",        "--chunks", "6",  "--json"};
        alone.insert(alone.end(), flags[i].begin(), flags[i].end());
        const ToolRun single = run_one_thread(alone);
        ASSERT_EQ(single.status, 0) << single.err;
        const double expected = json::parse(single.out)["perplexity"];
        // Stock's cuts of 32 tokens there, whole chunks here: kernels round differently.
        EXPECT_NEAR(results[i]["scores"]["nll"]["perplexity"], expected, 1e-3 * expected);
    }
    EXPECT_EQ(results[0]["scores"]["kl"]["value"], 0.0);
    EXPECT_GT(results[1]["scores"]["kl"]["difference"]["low"], 0.0);
}

TEST(EvalCommand, GeneratesTheAnswersThatItsLikeliestTokensPromise) {
    const std::string probes = PLEAT_MODELS_DIR "/../data/probes/arithmetic.jsonl";
    const auto scores_of = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{"eval",   model, "--probes", probes,
                                           "--spec", "6,9", "--json"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ToolRun run = run_one_thread(arguments);
        EXPECT_EQ(run.status, 0) << run.err;
        return json::parse(run.out)["results"];
    };
    const json read = scores_of({});
    const json written = scores_of({"--generate"});
    for (size_t plan = 0; plan < 2; ++plan) {
        const double expected = read[plan]["scores"]["exact:arithmetic"]["value"];
        // Other row counts may round a near tie the other way: two answers of 150.
        EXPECT_NEAR(written[plan]["scores"]["exact:arithmetic"]["value"], expected, 0.014);
        EXPECT_EQ(written[plan]["scores"]["parsed:arithmetic"]["value"], 1.0);
        EXPECT_GT(expected, 0.5);
    }
}

TEST(EvalCommand, TakesModelsByFlagTooAndWarnsOfEachPlan) {
    const std::string other = PLEAT_MODELS_DIR "/pleat-demo-qwen35-12L-q4_0.gguf";
    const ToolRun run = run_pleat({"eval", other, "-m", model, "--text", text, "-c", "32",
                                   "--chunks", "1", "--spec", "0,1", "--json", "-t", "1"});
    ASSERT_EQ(run.status, 0) << run.err;
    const json results = json::parse(run.out)["results"];
    ASSERT_EQ(results.size(), 4U);
    EXPECT_EQ(results[0]["model"], model);
    EXPECT_EQ(results[2]["model"], other);
    for (const char* const name : {"llama-16L", "qwen35-12L"}) {
        EXPECT_THAT(run.err,
                    HasSubstr(fmt::format("warning: pleat-demo-{}-q4_0.gguf, 0,1: a repeat "
                                          "touches the first 3 layers",
                                          name)));
    }
    EXPECT_THAT(run_pleat({"eval", "--text", text}).err, HasSubstr("no model given"));
}

TEST(EvalCommand, RefusesToRankAnswersThatNobodyCanRead) {
    const std::string guesses = PLEAT_MODELS_DIR "/../data/probes/math_guess.json";
    EXPECT_THAT(run_one_thread({"eval", model, "--probes", guesses, "--generate"}).err,
                testing::AllOf(HasSubstr("50 % are wanted (--min-parse)"),
                               HasSubstr("one that cannot, to rys_math-0: \"")));
}

TEST(EvalCommand, WritesWhatThePlansAnswered) {
    TempDir dir;
    const std::string probes = dir.file_with(
        "probes.jsonl", R"({"id": "a", "kind": "sum", "prompt": "1 + 1 =", "answer": "2"})"
                        "\n"
                        R"({"id": "b", "kind": "sum", "prompt": "2 + 3 =", "answer": "5"})"
                        "\n");
    const std::string answers = dir.file("answers.jsonl");
    const std::vector<std::string> arguments{"eval",       model,       "--probes", probes,
                                             "--generate", "--spec",    "6,9",      "--min-parse",
                                             "0",          "--answers", answers};
    for (int round = 0; round < 2; ++round) {  // goes over answers, too
        const ToolRun run = run_one_thread(arguments);
        ASSERT_EQ(run.status, 0) << run.err;
    }
    std::vector<std::string> seen;
    std::ifstream lines(answers);
    for (std::string line; std::getline(lines, line);) {
        const json it = json::parse(line);
        seen.push_back(it["plan"].get<std::string>() + " " + it["id"].get<std::string>());
        EXPECT_EQ(it["kind"], "sum");
        EXPECT_TRUE(it["text"].is_string());
        EXPECT_EQ(it["exact"], it["read"] == (it["id"] == "a" ? "2" : "5"));
    }
    EXPECT_THAT(seen, testing::ElementsAre("0..15 a", "0..15 b", "0..8,6..15 a", "0..8,6..15 b"));
    EXPECT_THAT(run_pleat({"eval", model, "--text", text, "--answers", answers}).err,
                HasSubstr("--generate"));
}

TEST(EvalCommand, SaysWhatIsWrong) {
    EXPECT_EQ(run_pleat({"eval", model}).err,
              "pleat: nothing to score on: name a text with --text or a probe file with "
              "--probes\n");
    EXPECT_EQ(run_pleat({"eval", model, "--text", text, "--memory", "lots"}).err,
              "pleat: --memory lots: expected a number of bytes above 0, with K, M or G behind "
              "it\n");
    EXPECT_THAT(run_pleat({"eval", model, "--text", text, "-c", "100000"}).err,
                HasSubstr("use a longer text or a smaller -c"));
    EXPECT_THAT(run_pleat({"eval", model, "--text", text, "--spec", "9,6"}).err,
                HasSubstr("--spec \"9,6\": block 9,6"));
}

class ScanCommand : public testing::Test {
  protected:
    std::vector<std::string> scan(const std::string& journal) const {
        return {"scan",        model, "--text", text,    "-c", "64", "--chunks", "24",
                "--max-block", "3",   "-o",     journal, "-t", "1",  "-q"};
    }
    TempDir dir_;
};

TEST_F(ScanCommand, ScoresEveryBlockAndWritesReportAndProfile) {
    std::vector<std::string> arguments = scan(dir_.file("scan.jsonl"));
    arguments.insert(arguments.end(),
                     {"--report", dir_.file("scan.html"), "--report-json", dir_.file("scan.json"),
                      "--profile", dir_.file("best.json")});
    const ToolRun run = run_pleat(arguments);
    ASSERT_EQ(run.status, 0) << run.err;
    // Layers 3 to 12 by blocks of one, two and three: 10 + 9 + 8.
    EXPECT_THAT(run.out, HasSubstr("27 plans were tried"));
    const json report = json::parse(read_bytes(dir_.file("scan.json")));
    EXPECT_EQ(report["rows"].size(), 27U);
    EXPECT_THAT(read_bytes(dir_.file("scan.html")), HasSubstr("<!"));
    const ToolRun plan = run_pleat({"plan", model, "--plan", dir_.file("best.json")});
    EXPECT_EQ(plan.status, 0) << plan.err;
    EXPECT_EQ(plan.err, "");
}

TEST_F(ScanCommand, ResumedAfterKillsGivesTheSameFile) {
    ASSERT_EQ(run_pleat(scan(dir_.file("whole.jsonl"))).status, 0);
    const std::string whole = read_bytes(dir_.file("whole.jsonl"));
    const auto n_records = [](const std::string& path) {
        return std::filesystem::exists(path) ? std::ranges::count(read_bytes(path), '\n') : 0;
    };
    const auto n_whole = n_records(dir_.file("whole.jsonl"));
    ASSERT_GT(n_whole, 40);  // 28 plans, and the winners again
    const std::string killed = dir_.file("killed.jsonl");
    // Once so many records are on the disk: within a batch of them, or at work on the next.
    for (const auto part : {n_whole / 8, n_whole / 2, 7 * n_whole / 8}) {
        PleatProcess process(scan(killed));
        while (!process.ended() && n_records(killed) < part) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        process.send(SIGKILL);
        process.wait();
        EXPECT_GE(n_records(killed), part);
    }
    ASSERT_EQ(run_pleat(scan(killed)).status, 0);
    EXPECT_EQ(read_bytes(killed), whole);
    // What a kill can leave whatever the moment: whole records, and a part of one.
    for (const size_t size : {whole.size() / 3, whole.size() - 200}) {
        std::filesystem::remove(killed);
        dir_.file_with("killed.jsonl", whole.substr(0, size));
        ASSERT_EQ(run_pleat(scan(killed)).status, 0);
        EXPECT_EQ(read_bytes(killed), whole);
    }
}

TEST_F(ScanCommand, KeepsItsJournalApartFromItsResults) {
    const auto refusal = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments = scan(dir_.file("scan.jsonl"));
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ToolRun run = run_pleat(arguments);
        EXPECT_EQ(run.status, 1);
        return run.err;
    };
    EXPECT_THAT(refusal({"--profile", dir_.file("scan.jsonl")}), HasSubstr("is where -o goes"));
    EXPECT_THAT(refusal({"--report", dir_.file("x"), "--report-json", dir_.file("x")}),
                HasSubstr("is where --report goes"));
    const std::string notes = dir_.file_with("notes.txt", "mine");
    EXPECT_THAT(refusal({"--report", notes}), HasSubstr("holds something else"));
    EXPECT_EQ(read_bytes(notes), "mine");
    EXPECT_THAT(refusal({"--import", notes}), HasSubstr("scans nothing"));
}

TEST_F(ScanCommand, WritesTheIdentityPlanWhereNoBlockIsBetter) {
    // Nothing is more like the identity plan than itself.
    const std::string profile = dir_.file("best.json");
    const ToolRun run =
        run_pleat({"scan", model, "--text", text, "-c", "32", "--chunks", "4", "--max-block", "1",
                   "--measures", "kl", "--profile", profile, "-t", "1", "-q"});
    ASSERT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("no block is better than the identity plan in kl"));
    EXPECT_EQ(json::parse(read_bytes(profile))["plan"], "layers:0..15");
}

TEST_F(ScanCommand, RefusesAJournalOfOtherSettings) {
    const std::string journal = dir_.file("scan.jsonl");
    ASSERT_EQ(run_pleat(scan(journal)).status, 0);
    std::vector<std::string> other = scan(journal);
    other.insert(other.end(), {"--seed", "7"});
    const ToolRun run = run_pleat(other);
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, HasSubstr("seed"));
}

/// A plan's negative log-likelihoods in a journal, item by item in the order of the text.
std::map<std::string, ItemScores> journal_items(const std::string& path) {
    std::map<std::string, ItemScores> items;
    std::ifstream lines(path);
    for (std::string line; std::getline(lines, line);) {
        const json record = json::parse(line);
        if (!record.contains("plan")) continue;
        ItemScores& plan = items[record["plan"]];
        for (const double sum : record["scores"]["nll"]["sum"]) plan.sum.push_back(sum);
        for (const double weight : record["scores"]["nll"]["weight"]) plan.weight.push_back(weight);
    }
    return items;
}

TEST_F(ScanCommand, HalvingFindsNineOfTheTenBest) {
    const auto rows_of = [&](const std::vector<std::string>& more) {
        std::vector<std::string> arguments{
            "scan",         model, "--text",      text, "-c",         "128",
            "--chunks",     "24",  "--max-block", "3",  "--measures", "ppl",
            "--validation", "0",   "-t",          "1",  "-q"};
        arguments.insert(arguments.end(), {"--report-json", dir_.file("report.json")});
        arguments.insert(arguments.end(), more.begin(), more.end());
        const ToolRun run = run_pleat(arguments);
        EXPECT_EQ(run.status, 0) << run.err;
        return json::parse(read_bytes(dir_.file("report.json")))["rows"];
    };
    const json all = rows_of({"-o", dir_.file("all.jsonl")});
    const auto items = journal_items(dir_.file("all.jsonl"));
    // The ten best, and what is worse than the tenth by no more than one standard error.
    std::set<std::string> good;
    for (size_t i = 0; i < all.size(); ++i) {
        const PairedDifference d =
            paired_difference(items.at(all[i]["canonical"]), items.at(all[9]["canonical"]));
        if (i < 10 || d.mean <= d.error) good.insert(all[i]["canonical"]);
    }
    ASSERT_LT(good.size(), 20U) << "or any ten of the 27 would do";
    for (const char* const seed : {"1", "2"}) {
        const json rows = rows_of({"--budget", "0.5", "--seed", seed});
        size_t found = 0;
        for (size_t i = 0; i < 10; ++i) found += good.count(rows[i]["canonical"]);
        EXPECT_GE(found, 9U) << "seed " << seed;
    }
}

TEST_F(ScanCommand, SetsAsideWhatStoppedEarly) {
    std::vector<std::string> arguments = scan(dir_.file("scan.jsonl"));
    arguments.insert(arguments.end(),
                     {"--report-json", dir_.file("report.json"), "--budget", "0.6"});
    ASSERT_EQ(run_pleat(arguments).status, 0);
    const json report = json::parse(read_bytes(dir_.file("report.json")));
    const json& rows = report["rows"];
    size_t n_stopped = 0;
    for (const json& row : rows) n_stopped += row.contains("set_aside") ? 1 : 0;
    EXPECT_GT(n_stopped, rows.size() / 3);
    EXPECT_LT(n_stopped, rows.size());
    EXPECT_FALSE(rows[0].contains("set_aside"));
    EXPECT_THAT(rows.back()["set_aside"].get<std::string>(), HasSubstr("stopped early: "));
    for (const json& front : report["pareto_fronts"]) {
        for (const size_t i : front["compute_ratio"]) EXPECT_FALSE(rows[i].contains("set_aside"));
    }
}

TEST_F(ScanCommand, ImportsResultsOfOthersIntoAReport) {
    const std::string old =
        dir_.file_with("old.jsonl",
                       "{\"is_baseline\":true,\"dup_start\":-1,\"dup_end\":-1,\"math_score\":0.5}\n"
                       "{\"dup_start\":2,\"dup_end\":4,\"n_dup_layers\":2,\"math_score\":0.6}\n");
    const ToolRun run =
        run_pleat({"scan", model, "--import", old, "--report-json", dir_.file("old.json")});
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(json::parse(read_bytes(dir_.file("old.json")))["rows"].size(), 1U);
    EXPECT_THAT(run_pleat({"scan", model, "--import", old}).err, HasSubstr("--report FILE.html"));
}

}  // namespace
}  // namespace pleat::test
