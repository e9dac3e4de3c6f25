#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "support/pleat_tool.h"
#include "support/stock_tools.h"
#include "support/temp_file.h"

namespace pleat::test {
namespace {

using nlohmann::json;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";

Words operator+(Words left, const Words& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

ToolRun pleat_run(const Words& arguments, std::string_view input = "") {
    return run_pleat(Words{"run", model, "-t", "1"} + arguments, input);
}

/// The generated text alone; fails the test when the command fails.
std::string pleat_text(const Words& arguments) {
    const ToolRun result = pleat_run(arguments + Words{"-q", "--no-display-prompt"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_THAT(result.out, EndsWith("\n"));
    return result.out.substr(0, result.out.size() - 1);
}

json pleat_json(const Words& arguments) {
    const ToolRun result = pleat_run(arguments + Words{"--json", "-q"});
    EXPECT_EQ(result.status, 0) << result.err;
    return json::parse(result.out);
}

/// The one line that a failing command says.
std::string pleat_error(const Words& arguments) {
    const ToolRun result = run_pleat(arguments);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    return result.err;
}

/// All that llama-completion writes, without the blank line and the mark with which it ends. Its
/// log thread may be cut off at its end; what it says last proves that the text before is whole.
std::string stock_output(const Words& arguments) {
    for (int attempt = 0; attempt < 20; ++attempt) {
        const ToolRun result =
            require_stock_tool("llama-completion", Words{"-m", model, "-t", "1"} + arguments);
        if (result.err.find("common_perf_print:") == std::string::npos) continue;
        std::string text = result.out;
        for (const std::string_view end : {"\n\n", " [end of text]\n"}) {
            if (text.ends_with(end)) text.resize(text.size() - end.size());
        }
        return text;
    }
    fail("the output of llama-completion was never complete");
}

#define SKIP_WITHOUT_STOCK() \
    if (!have_stock_tool("llama-completion")) GTEST_SKIP() << "llama-completion is not here"

struct Case {
    std::string prompt;
    int n_predict;
    friend void PrintTo(const Case& c, std::ostream* out) { *out << c.prompt; }
};

class RunAgainstStock : public testing::TestWithParam<Case> {};

TEST_P(RunAgainstStock, TheLikeliestTextIsTheSame) {
    SKIP_WITHOUT_STOCK();
    const Words arguments{
        "-p", GetParam().prompt, "-n", std::to_string(GetParam().n_predict), "--temp", "0", "-c",
        "512"};
    EXPECT_EQ(pleat_text(arguments),
              stock_output(arguments + Words{"-no-cnv", "--no-display-prompt"}));
}

TEST_P(RunAgainstStock, TheTextOfASeedIsTheSame) {
    SKIP_WITHOUT_STOCK();
    for (const char* const seed : {"1", "42", "4294967294"}) {
        const Words arguments{
            "-p", GetParam().prompt, "-n", std::to_string(GetParam().n_predict), "-s", seed};
        EXPECT_EQ(pleat_text(arguments),
                  stock_output(arguments + Words{"-no-cnv", "--no-display-prompt"}))
            << "seed " << seed;
    }
}

INSTANTIATE_TEST_SUITE_P(Prompts, RunAgainstStock,
                         testing::Values(Case{"Once upon a time", 24},
                                         Case{"The cat near the tower", 100},
                                         Case{"Q: 12 + 30 = ", 8},
                                         Case{R"(one\ntwo\tthree\x21)", 16},
                                         Case{"<|user|>\nHow many?<|end|>\n<|assistant|>\n", -1}));

TEST(Run, FillsTheContextAsStockDoes) {
    SKIP_WITHOUT_STOCK();
    for (const char* const n_ctx : {"512", "256", "100"}) {  // 100 becomes 256, as there
        const Words arguments{"-p",     "The cat", "-n", "-1", "--ignore-eos",
                              "--temp", "0",       "-c", n_ctx};
        EXPECT_EQ(pleat_text(arguments),
                  stock_output(arguments + Words{"-no-cnv", "--no-display-prompt"}))
            << "-c " << n_ctx;
        const json result = pleat_json(arguments);
        EXPECT_EQ(result["finish_reason"], "context");
        const int n_cells = std::string(n_ctx) == "512" ? 512 : 256;
        EXPECT_EQ(result["prompt_tokens"].get<int>() + result["generated_tokens"].get<int>(),
                  n_cells);
    }
}

// The demo model's BOS also ends texts, and stock ends at once after a prompt that ends with such a
// token, so there is nothing to compare with.
TEST(Run, StartsFromBosWithoutAPrompt) {
    const json result = pleat_json({"-n", "8", "--temp", "0"});
    EXPECT_EQ(result["prompt_tokens"], 1);
    EXPECT_EQ(result["generated_tokens"], 8);
    EXPECT_NE(result["text"], "");
}

TEST(Run, CutsAPromptWhereStockDoes) {
    SKIP_WITHOUT_STOCK();
    std::string prompt;
    for (int i = 0; i < 20; ++i) prompt += fmt::format("The code of Theo is {}. ", 1000 + 7 * i);
    const Words arguments{"-p", prompt, "-n",  "32", "--ignore-eos", "--temp", "0",
                          "-b", "64",   "-ub", "24"};
    EXPECT_EQ(pleat_text(arguments),
              stock_output(arguments + Words{"-no-cnv", "--no-display-prompt"}));
}

TEST(Run, EverySamplerDrawsAsInStock) {
    SKIP_WITHOUT_STOCK();
    const std::vector<Words> settings{
        {"--temp", "1.5", "--top-k", "0", "--top-p", "1", "--min-p", "0"},
        {"--typical", "0.7", "--min-p", "0.01", "--temp", "1.2"},
        {"--xtc-probability", "0.5", "--xtc-threshold", "0.05", "--temp", "1.2"},
        {"--top-nsigma", "1.5", "--temp", "1.3"},
        {"--dynatemp-range", "0.5", "--dynatemp-exp", "1.5"},
        {"--repeat-penalty", "1.3", "--repeat-last-n", "32", "--presence-penalty", "0.2",
         "--frequency-penalty", "0.1"},
        {"--dry-multiplier", "0.8", "--dry-base", "1.5", "--dry-allowed-length", "1",
         "--dry-penalty-last-n", "128", "--dry-sequence-breaker", "none"},
        {"--dry-multiplier", "0.8", "--dry-sequence-breaker", ".", "--dry-sequence-breaker",
         R"(\n)"},
        {"--mirostat", "1", "--mirostat-lr", "0.2", "--mirostat-ent", "3"},
        {"--mirostat", "2"},
        {"--adaptive-target", "0.4", "--adaptive-decay", "0.8", "--samplers",
         "top_k;temperature;adaptive_p"},
        {"--samplers", "top_k;temperature", "--top-k", "5"},
        {"--sampling-seq", "kpt", "--top-p", "0.8"},
        {"-l", "46-inf", "-l", "32+1.5"},
    };
    for (const Words& setting : settings) {
        const Words arguments =
            Words{"-p", "The cat near", "-n", "40", "-s", "11", "--ignore-eos"} + setting;
        EXPECT_EQ(pleat_text(arguments),
                  stock_output(arguments + Words{"-no-cnv", "--no-display-prompt"}))
            << setting[0] << ' ' << setting[1];
    }
}

TEST(Run, AnswersAChatAsStockDoes) {
    SKIP_WITHOUT_STOCK();
    for (const Words& system : {Words{}, Words{"-sys", "You are brief."}}) {
        const Words arguments = system + Words{"-p", "What is 12 + 30?", "-n", "40", "--temp", "0"};
        const std::string stock =
            stock_output(arguments + Words{"-cnv", "-st", "--no-display-prompt"});
        EXPECT_EQ(pleat_text(arguments + Words{"--chat"}), stock);
        EXPECT_NE(stock, "");
    }
}

TEST(Run, EchoesThePromptAsStockDoes) {
    SKIP_WITHOUT_STOCK();
    const Words arguments{"-p", R"(A <|end|> in\nthe prompt)", "-n", "8", "--temp", "0"};
    for (const Words& special : {Words{}, Words{"--special"}}) {
        const ToolRun result = pleat_run(arguments + special + Words{"-q"});
        EXPECT_EQ(result.out, stock_output(arguments + special + Words{"-no-cnv"}) + "\n");
    }
}

TEST(Run, FollowsAGrammarFileAsStockDoes) {
    SKIP_WITHOUT_STOCK();
    const TempFile grammar(".gbnf", "root ::= \"the \" [a-z]{1,9} \" is \" [0-9] [0-9] \".\"\n");
    const Words arguments{"-p", "The cat near",   "-n",          "64", "-s",
                          "3",  "--grammar-file", grammar.path()};
    const std::string text = pleat_text(arguments);
    EXPECT_EQ(text, stock_output(arguments + Words{"-no-cnv", "--no-display-prompt"}));
    EXPECT_THAT(text, testing::MatchesRegex("the [a-z]{1,9} is [0-9][0-9]\\."));
    EXPECT_EQ(pleat_json(arguments)["finish_reason"], "eos");
}

TEST(Run, TheIdentityChangesNothingAndARepeatDoes) {
    const Words arguments{"-p",          "The cat near the tower", "-n", "48", "--temp", "0",
                          "--ignore-eos"};
    const json plain = pleat_json(arguments);
    const json identity = pleat_json(arguments + Words{"--repeat-layers", "0,0"});
    const json written = pleat_json(arguments + Words{"--layers", "0..15"});
    const json repeated = pleat_json(arguments + Words{"--repeat-layers", "2,14"});
    for (const json& same : {identity, written}) {
        EXPECT_EQ(same["text"], plain["text"]);
        EXPECT_EQ(same["logits_hash"], plain["logits_hash"]);
        EXPECT_EQ(same["hash"], plain["hash"]);
    }
    EXPECT_NE(repeated["text"], plain["text"]);
    EXPECT_NE(repeated["hash"], plain["hash"]);
    EXPECT_EQ(repeated["plan"], "0..13,2..15");
    EXPECT_EQ(repeated["cache_bytes"].get<int64_t>() * 16,
              plain["cache_bytes"].get<int64_t>() * 28);
}

TEST(Run, JsonHasTheseFields) {
    const json result = pleat_json({"-p", "The cat", "-n", "5", "--ignore-eos", "-s", "9"});
    Words names;
    for (const auto& [name, value] : result.items()) names.push_back(name);
    EXPECT_THAT(names,
                testing::UnorderedElementsAre(
                    "model", "plan", "hash", "prompt_tokens", "generated_tokens", "tokens", "text",
                    "finish_reason", "stop", "seed", "timings", "prompt_tokens_per_second",
                    "generation_tokens_per_second", "weight_read_bytes_per_second",
                    "weight_read_bytes_per_token", "cache_bytes", "logits_hash", "warnings"));
    EXPECT_EQ(result["model"], model);
    EXPECT_EQ(result["plan"], "0..15");
    EXPECT_EQ(result["generated_tokens"], 5);
    EXPECT_EQ(result["tokens"].size(), 5U);
    EXPECT_EQ(result["finish_reason"], "length");
    EXPECT_TRUE(result["stop"].is_null());
    EXPECT_EQ(result["seed"], 9);
    EXPECT_THAT(result["logits_hash"].get<std::string>(), testing::SizeIs(16));
    EXPECT_EQ(result["warnings"], json::array());
    for (const char* const name : {"load_ms", "prompt_ms", "generation_ms"}) {
        EXPECT_GT(result["timings"][name], 0.0) << name;
    }
    EXPECT_DOUBLE_EQ(result["weight_read_bytes_per_second"].get<double>(),
                     result["weight_read_bytes_per_token"].get<double>() *
                         result["generation_tokens_per_second"].get<double>());
}

TEST(Run, JsonStandsAloneOnTheStandardOutputWhileTheLogGoesToStderr) {
    const ToolRun result = pleat_run({"-p", "The cat", "-n", "3", "--json"});
    EXPECT_EQ(std::ranges::count(result.out, '\n'), 1);
    EXPECT_TRUE(json::accept(result.out));
    EXPECT_THAT(result.err, HasSubstr("plan: 0..15 (identity)"));
    EXPECT_THAT(result.err, HasSubstr("tokens/s"));
}

TEST(Run, WarningsOfThePlanAreInTheJson) {
    const json result = pleat_json({"-p", "The cat", "-n", "1", "--layers", "0..3"});
    EXPECT_THAT(result["warnings"].dump(), HasSubstr("only 4 of 16 layers are run"));
}

TEST(Run, EndsBeforeAStopString) {
    const Words arguments{"-p",          "The cat near the tower", "-n", "64", "--temp", "0",
                          "--ignore-eos"};
    const std::string text = pleat_text(arguments);
    const size_t at = text.find(" the ");
    ASSERT_NE(at, std::string::npos) << text;
    const json result =
        pleat_json(arguments + Words{"-r", "no such text", "--stop", R"(\x20the\x20)"});
    EXPECT_EQ(result["text"], text.substr(0, at));
    EXPECT_EQ(result["finish_reason"], "stop");
    EXPECT_EQ(result["stop"], " the ");
}

TEST(Run, OfNoTokensMeasuresThePrompt) {
    EXPECT_EQ(pleat_run({"-p", "The cat", "-n", "0", "-q"}).out, "\n");
    const json result = pleat_json({"-p", "The cat", "-n", "0"});
    EXPECT_EQ(result["generated_tokens"], 0);
    EXPECT_EQ(result["finish_reason"], "length");
    EXPECT_GT(result["prompt_tokens_per_second"], 0.0);
    EXPECT_TRUE(result["generation_tokens_per_second"].is_null());
}

TEST(Run, ForbidsTokensByTheirBias) {
    const Words arguments{"-p", "The cat near the tower", "-n", "16", "--temp", "0"};
    const int first = pleat_json(arguments)["tokens"][0];
    const json without = pleat_json(arguments + Words{"-l", fmt::format("{}-inf", first)});
    for (const json& token : without["tokens"]) EXPECT_NE(token, first);
}

TEST(Run, ReadsThePromptFromAFileOrTheStandardInput) {
    const Words arguments{"-n", "8", "--temp", "0", "-q"};
    const TempFile file(".txt", "The cat near\\n\n");  // an escape, and the file's last newline
    const std::string expected = pleat_run(arguments + Words{"-p", R"(The cat near\n)"}).out;
    EXPECT_EQ(pleat_run(arguments + Words{"-f", file.path()}).out, expected);
    EXPECT_EQ(pleat_run(arguments + Words{"-f", "-"}, "The cat near\\n\n").out, expected);
    EXPECT_THAT(pleat_run(arguments + Words{"-f", file.path(), "--no-escape"}).out,
                StartsWith("The cat near\\n"));
}

TEST(Run, EachRunWithoutASeedDrawsAnew) {
    const Words arguments{"-p", "The cat", "-n", "4", "-s", "-1"};
    EXPECT_NE(pleat_json(arguments)["seed"], pleat_json(arguments)["seed"]);
}

TEST(Run, SaysInOneLineWhatIsWrong) {
    const Words run{"run", model, "-p", "The cat", "-n", "1"};
    EXPECT_THAT(pleat_error(run + Words{"--no-such-flag"}), HasSubstr("--no-such-flag"));
    EXPECT_THAT(pleat_error(run + Words{"--temp", "warm"}), HasSubstr("--temp"));
    EXPECT_THAT(pleat_error(run + Words{"--top-p", "2"}), HasSubstr("--top-p"));
    EXPECT_THAT(pleat_error(run + Words{"-n", "many"}), HasSubstr("--predict"));
    EXPECT_THAT(pleat_error(run + Words{"-s", "-2"}), HasSubstr("--seed"));
    EXPECT_THAT(pleat_error(run + Words{"--samplers", "top_x"}), HasSubstr("top_x"));
    EXPECT_THAT(pleat_error(run + Words{"-l", "5"}), HasSubstr("--logit-bias"));
    EXPECT_THAT(pleat_error(run + Words{"-l", "1024-1"}), HasSubstr("1024"));
    EXPECT_THAT(pleat_error(run + Words{"--grammar", "root ::= ("}), HasSubstr("grammar"));
    EXPECT_THAT(pleat_error(run + Words{"--grammar-file", "/no/such/file"}),
                HasSubstr("/no/such/file: cannot open the grammar: No such file"));
    EXPECT_THAT(pleat_error(run + Words{"--repeat-layers", "9,40"}), HasSubstr("9,40"));
    EXPECT_THAT(pleat_error(run + Words{"-sys", "Be brief."}), HasSubstr("--chat"));
    EXPECT_THAT(pleat_error({"run", model, "--chat"}), HasSubstr("--chat needs"));
    EXPECT_THAT(pleat_error({"run", model, "-f", "/no/such/file"}),
                HasSubstr("/no/such/file: cannot open the prompt: No such file"));
    EXPECT_THAT(pleat_error({"run", "/no/such/file.gguf", "-p", "x"}),
                HasSubstr("/no/such/file.gguf"));
    EXPECT_THAT(pleat_error({"run", "-p", "x"}), HasSubstr("no model given"));
    EXPECT_THAT(pleat_error({"run", __FILE__, "-p", "x"}), HasSubstr(__FILE__));
}

TEST(Run, RefusesAPromptLongerThanTheContext) {
    std::string prompt;
    for (int i = 0; i < 100; ++i) prompt += fmt::format("{} ", 1000 + i);
    EXPECT_THAT(pleat_error({"run", model, "-p", prompt, "-c", "256"}),
                HasSubstr("the prompt has 501 tokens, the context 256"));
}

TEST(Run, HasHelpForEveryFlag) {
    const std::string help = run_pleat({"run", "--help"}).out;
    for (const char* const flag : {"--model",
                                   "--prompt",
                                   "--file",
                                   "--escape",
                                   "--no-escape",
                                   "--chat",
                                   "--system-prompt",
                                   "--system-prompt-file",
                                   "--predict",
                                   "--n-predict",
                                   "--reverse-prompt",
                                   "--stop",
                                   "--special",
                                   "--display-prompt",
                                   "--no-display-prompt",
                                   "--json",
                                   "--repeat-layers",
                                   "--layers",
                                   "--skip-layers",
                                   "--drop-attention",
                                   "--drop-ffn",
                                   "--plan",
                                   "--seed",
                                   "--temp",
                                   "--temperature",
                                   "--top-k",
                                   "--top-p",
                                   "--min-p",
                                   "--typical",
                                   "--typical-p",
                                   "--top-nsigma",
                                   "--top-n-sigma",
                                   "--xtc-probability",
                                   "--xtc-threshold",
                                   "--dynatemp-range",
                                   "--dynatemp-exp",
                                   "--mirostat",
                                   "--mirostat-lr",
                                   "--mirostat-ent",
                                   "--adaptive-target",
                                   "--adaptive-decay",
                                   "--repeat-penalty",
                                   "--repeat-last-n",
                                   "--presence-penalty",
                                   "--frequency-penalty",
                                   "--dry-multiplier",
                                   "--dry-base",
                                   "--dry-allowed-length",
                                   "--dry-penalty-last-n",
                                   "--dry-sequence-breaker",
                                   "--samplers",
                                   "--sampling-seq",
                                   "--sampler-seq",
                                   "--logit-bias",
                                   "--ignore-eos",
                                   "--grammar",
                                   "--grammar-file",
                                   "--ctx-size",
                                   "--threads",
                                   "--quiet"}) {
        EXPECT_THAT(help, HasSubstr(flag));
    }
}

/// Waits until a run has written some text, so that the signal finds it generating.
bool has_begun(const PleatProcess& process) {
    for (int i = 0; i < 3000; ++i) {
        if (process.out().size() > 20) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
}

/// A run that would take minutes: the wide context costs nothing until it is used.
const Words long_run{"run", model, "-p",           "The cat", "-n",   "-1",
                     "-t",  "1",   "--ignore-eos", "-c",      "65536"};

TEST(Run, StopsAtCtrlCWithItsTimings) {
    PleatProcess process(long_run);
    ASSERT_TRUE(has_begun(process));
    process.send(SIGINT);
    const ToolRun result = process.wait();
    EXPECT_EQ(result.status, 130);
    EXPECT_THAT(result.err, HasSubstr("cancelled"));
    EXPECT_THAT(result.err, HasSubstr("tokens/s"));
    EXPECT_THAT(result.out, EndsWith("\n"));
}

TEST(Run, EndsQuietlyWhenNobodyReadsItsOutput) {
    std::string command = "{ " PLEAT_PROGRAM;
    for (const std::string& word : long_run) command += " '" + word + "'";
    const TempFile err(".err");
    const TempFile status(".status");
    command += " -q 2>" + err.path() + "; echo $? >" + status.path() + "; } | head -c 1 >/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
    EXPECT_EQ(read_bytes(status.path()), "141\n");  // what a shell makes of SIGPIPE
    EXPECT_EQ(read_bytes(err.path()), "");
}

TEST(Run, SaysWhenTheOutputCannotBeWritten) {
    const TempFile err(".err");
    const std::string command =
        PLEAT_PROGRAM " run '" + model + "' -p x -n 4 -q -t 1 >/dev/full 2>" + err.path();
    EXPECT_NE(std::system(command.c_str()), 0);
    EXPECT_THAT(read_bytes(err.path()), HasSubstr("cannot write to the standard output"));
}

}  // namespace
}  // namespace pleat::test
