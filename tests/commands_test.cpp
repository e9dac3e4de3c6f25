#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/pleat_tool.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/random_tokens.h"
#include "support/stock.h"
#include "support/stock_tools.h"
#include "support/temp_file.h"

// inspect, plan, logits, perplexity and bench as a user calls them.
namespace pleat::test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using Words = std::vector<std::string>;

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
const std::string text_file = PLEAT_MODELS_DIR "/demo-text.txt";

std::string output_of(const Words& arguments) {
    const ToolRun result = run_pleat(arguments);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
}

json json_of(Words arguments) {
    arguments.emplace_back("--json");
    return json::parse(output_of(arguments));
}

std::string error_of(const Words& arguments) {
    const ToolRun result = run_pleat(arguments);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    return result.err;
}

TEST(InspectCommand, ShowsRolesAndBytesOfEveryLayer) {
    const json report = json_of({"inspect", model});
    EXPECT_EQ(report["architecture"], "llama");
    EXPECT_EQ(report["n_layer"], 16);
    ASSERT_EQ(report["layers"].size(), 16U);
    const json& layer = report["layers"][5];
    EXPECT_EQ(layer["role"], "full_attention");
    EXPECT_EQ(layer["droppable"], true);
    // Two heads of 32 elements in F16.
    EXPECT_EQ(layer["k_bytes_per_token"], 2 * 32 * 2);
    // Q4_0: 18 bytes for 32 weights; norms in F32. q and output 192x192, k and v 192x64, FFN 3
    // 192x384.
    EXPECT_EQ(layer["attention_weight_bytes"], (2 * 192 * 192 + 2 * 192 * 64) / 32 * 18 + 192 * 4);
    EXPECT_EQ(layer["ffn_weight_bytes"], 3 * 192 * 384 / 32 * 18 + 192 * 4);
    EXPECT_THAT(output_of({"inspect", "-m", model}), HasSubstr("full_attention"));
}

TEST(PlanCommand, ReportsPassesSeamsCopiesAndCostsFromTheHeader) {
    const json report =
        json_of({"plan", model, "--repeat-layers", "6,9", "--drop-attention", "12", "-c", "512"});
    EXPECT_EQ(report["plan"], "0..8,6..11,12[-attn],13..15");
    EXPECT_EQ(report["n_pass"], 19);
    EXPECT_EQ(report["n_layer"], 16);
    EXPECT_EQ(report["passes"][9]["layer"], 6);
    EXPECT_EQ(report["passes"][15]["attention"], false);
    EXPECT_TRUE(report["passes"][15]["slot"].is_null());
    EXPECT_EQ(report["seams"], json::parse(R"([{"pass": 9, "from": 8, "to": 6}])"));
    EXPECT_EQ(report["inserted"],
              json::parse(R"([{"begin": 6, "end": 9, "pass": 9, "layers": [6, 7, 8]}])"));
    EXPECT_EQ(report["costs"]["cache_bytes"], 18 * 512 * 2 * 2 * 32 * 2);
    EXPECT_DOUBLE_EQ(report["ratios"]["cache_bytes"].get<double>(), 18.0 / 16.0);
}

TEST(PlanCommand, TakesASpecAndAPlanFile) {
    const TempFile file(".json", R"([{"start": 6, "end": 9, "count": 3}])");
    EXPECT_EQ(json_of({"plan", model, "--plan", file.path()})["plan"], "0..8,6..8,6..15");
    EXPECT_EQ(json_of({"plan", model, "--spec", "@" + file.path()})["plan"], "0..8,6..8,6..15");
    EXPECT_EQ(json_of({"plan", model, "--spec", "6,9+drop:12"})["plan"],
              "0..8,6..11,12[-attn],13..15");
    EXPECT_THAT(error_of({"plan", model, "--plan", file.path(), "--drop-ffn", "3"}),
                HasSubstr("goes with no other plan flag"));
}

std::string path_of(const std::string& name) {
    const auto at = std::ranges::find(architecture_models(), name, &NamedModel::name);
    if (at == architecture_models().end()) throw std::runtime_error("no model " + name);
    return make_model(at->model).path();
}

TEST(PlanCommand, SaysThatALayerWhichReadsOthersKvSavesNone) {
    const Words dropped{"plan", path_of("gemma4_shared_kv"), "--drop-attention", "3,4"};
    EXPECT_THAT(
        output_of(dropped),
        HasSubstr("\nnote: layers 3..4 read the K/V of other layers and own none: to drop their "
                  "attention saves compute and weights, but no K/V\n"));
    const json report = json_of(dropped);
    EXPECT_EQ(report["notes"].size(), 1U);
    EXPECT_EQ(report["ratios"]["kv_bytes_per_token"], 1.0);
    EXPECT_LT(report["ratios"]["flops_per_token"], 1.0);
    EXPECT_EQ(json_of({"plan", path_of("gemma4_shared_kv")})["notes"], json::array());
    EXPECT_EQ(json_of({"plan", path_of("gemma4_shared_kv"), "--drop-ffn", "3"})["notes"].size(),
              0U);
}

TEST(PlanCommand, ReportsOnAModelOfEveryArchitecture) {
    for (const NamedModel& named : architecture_models()) {
        const json report =
            json_of({"plan", make_model(named.model).path(), "--repeat-layers", "1,2"});
        EXPECT_EQ(report["model"]["architecture"], named.model.architecture);
        EXPECT_EQ(report["n_pass"], named.model.n_layer + 1);
    }
}

TEST(PlanCommand, RefusesWhatARoleForbids) {
    const std::string hybrid = path_of("qwen35");
    const std::string shared = path_of("gemma4_shared_kv");
    const auto error = [](const std::string& file, const char* flag, const char* text) {
        return error_of({"plan", file, flag, text});
    };
    EXPECT_EQ(error(hybrid, "--drop-attention", "3,0"),
              "pleat: --drop-attention \"3,0\": layer 0 (character 3) is recurrent and cannot lose "
              "its attention; the layers of this model that can are 3,7\n");
    EXPECT_EQ(error(hybrid, "--drop-attention", "3,7"),
              "pleat: --drop-attention \"3,7\": layer 7 (character 3) is the last attention layer "
              "that was left; a hybrid model keeps at least one of its attention layers 3,7\n");
    EXPECT_THAT(error(hybrid, "--skip-layers", "2..7"),
                HasSubstr("layer 7 of 2..7 (character 1) is the last attention layer"));
    EXPECT_THAT(error(hybrid, "--layers", "0[qk=0.5],3"),
                HasSubstr("is recurrent; a qk factor needs a pass with attention"));
    EXPECT_EQ(error(shared, "--drop-attention", "1"),
              "pleat: --drop-attention \"1\": layer 1 (character 1) owns the K/V that layers 3..4 "
              "read; keep its attention, or drop theirs too\n");
    EXPECT_EQ(error(shared, "--skip-layers", "2"),
              "pleat: --skip-layers \"2\": layer 2 (character 1) owns the K/V that layer 5 reads; "
              "keep it, or skip them or drop their attention too\n");
    EXPECT_EQ(error(shared, "--layers", "0,3,1,2"),
              "pleat: --layers \"0,3,1,2\": layer 3 (character 3) reads the K/V of layer 1, and no "
              "earlier pass of that has attention; put layer 1 before it, or write 3[-attn]\n");
}

TEST(Commands, SayWhatIsWrongInOneLine) {
    EXPECT_EQ(
        error_of({"plan", model, "--repeat-layers", "10,14;60,65"}),
        "pleat: --repeat-layers \"10,14;60,65\": block 60,65 (character 7) ends after the last "
        "layer; this model has 16 layers, so 0 <= i < j <= 16\n");
    EXPECT_THAT(error_of({"inspect"}), HasSubstr("no model given"));
    EXPECT_THAT(error_of({"inspect", "no-such-file.gguf"}), HasSubstr("no-such-file.gguf"));
    EXPECT_THAT(error_of({"inspect", model, "--no-such-flag"}), HasSubstr("--no-such-flag"));
    EXPECT_THAT(error_of({"frobnicate"}), HasSubstr("frobnicate"));
    EXPECT_THAT(error_of({"inspect", model, "-m", model}), HasSubstr("two models given"));
    EXPECT_THAT(error_of({}), HasSubstr("subcommand"));
    EXPECT_THAT(error_of({"plan", model, "-ctk", "q9_9"}), HasSubstr("q9_9"));
    EXPECT_THAT(error_of({"plan", model, "--rpc", "host:1"}), HasSubstr("--rpc is not supported"));
    EXPECT_THAT(error_of({"logits", model, "--tokens", "1,,2", "-o", "x.npy"}),
                HasSubstr("character 3: expected a token id"));
    EXPECT_THAT(error_of({"logits", model, "--tokens", "1,5000", "-o", "x.npy", "-q"}),
                HasSubstr("token 5000 is not in the vocabulary"));
    EXPECT_THAT(error_of({"logits", model, "--tokens", "1,2", "-o", "/no/such/dir/x.npy", "-q"}),
                HasSubstr("/no/such/dir/x.npy"));
    EXPECT_THAT(error_of({"perplexity", model, "-f", "no-such-text", "-q"}),
                HasSubstr("no-such-text"));
    EXPECT_THAT(error_of({"perplexity", model, "-f", "/tmp", "-q"}), HasSubstr("/tmp: "));
    EXPECT_THAT(error_of({"plan", model, "--plan", ""}), HasSubstr("--plan is empty"));
    EXPECT_THAT(error_of({"bench", model, "--repeat-layers", "6,9", "--spec", "drop:2"}),
                HasSubstr("excludes"));
    const TempFile little(".txt", "too little");
    EXPECT_THAT(error_of({"perplexity", model, "-f", little.path(), "-q"}),
                HasSubstr("need at least 1024"));
}

TEST(Commands, TakeNumbersOnlyAsPlainDigitsAndSayTheRange) {
    for (const char* text : {"1,2", "0x10", "1_0", "1'0", "1.5", "", "two", "-1"}) {
        EXPECT_THAT(error_of({"plan", model, "-t", text}),
                    HasSubstr(fmt::format("\"{}\" is not a whole number from 1 to 1024", text)));
    }
    EXPECT_THAT(error_of({"run", model, "-p", "x", "--top-k", "1_0"}), HasSubstr("1_0"));
    EXPECT_THAT(error_of({"run", model, "-p", "x", "--temp", "0x1"}), HasSubstr("0x1"));
}

TEST(Commands, NameAFlagTheyDoNotHave) {
    for (const char* flag : {"--numa", "-hf", "-st", "-cnv", "-no-cnv", "--override-kv"}) {
        EXPECT_EQ(error_of({"run", model, flag, "x"}),
                  fmt::format("pleat: run has no flag {}; see pleat run --help\n", flag));
    }
}

TEST(Commands, LetTheLastOfARepeatedFlagCount) {
    EXPECT_EQ(json_of({"plan", model, "-c", "256", "-c", "512"})["context"]["n_ctx"], 512);
}

TEST(Commands, FailWhenTheirOutputIsLost) {
    for (const char* command : {"plan", "inspect"}) {
        const std::string line =
            fmt::format("{} {} {} > /dev/full 2>&1", PLEAT_PROGRAM, command, model);
        EXPECT_NE(std::system(line.c_str()), 0) << command;
    }
}

TEST(LogitsCommand, NeverOverwritesTheModel) {
    const TempFile copy(".gguf", read_bytes(model));
    EXPECT_THAT(error_of({"logits", copy.path(), "--tokens", "1", "-o", copy.path(), "-q"}),
                HasSubstr("that is the model itself"));
    EXPECT_EQ(read_bytes(copy.path()), read_bytes(model));
}

TEST(Commands, HaveHelpWithExamples) {
    for (const char* command :
         {"inspect", "plan", "run", "perplexity", "bench", "bake", "logits"}) {
        EXPECT_THAT(output_of({command, "--help"}), HasSubstr("pleat " + std::string(command)));
    }
    EXPECT_THAT(output_of({"--help"}), HasSubstr("Examples:"));
    EXPECT_THAT(output_of({"--version"}), StartsWith("pleat "));
}

TEST(Commands, WarnThatThereIsNoGpu) {
    const ToolRun result = run_pleat({"plan", model, "-ngl", "99"});
    EXPECT_EQ(result.status, 0);
    EXPECT_THAT(result.err, HasSubstr("warning: -ngl 99"));
}

TEST(LogitsCommand, WritesStocksLogitsAsANumpyFile) {
    const TempFile file(".npy");
    const auto tokens = random_tokens(4, 12, 1024);
    std::string list;
    for (const int32_t token : tokens) list += fmt::format("{}{}", list.empty() ? "" : ",", token);
    output_of(
        {"logits", model, "--tokens", list, "--prefill", "8", "-o", file.path(), "-q", "-t", "1"});
    const std::string bytes = read_bytes(file.path());
    ASSERT_GT(bytes.size(), 128U);
    EXPECT_EQ(bytes.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
    const size_t length =
        static_cast<unsigned char>(bytes[8]) + 256U * static_cast<unsigned char>(bytes[9]);
    EXPECT_EQ((10 + length) % 64, 0U);
    EXPECT_THAT(bytes.substr(10, length),
                StartsWith("{'descr': '<f4', 'fortran_order': False, 'shape': (12, 1024), }"));
    Logits logits{.n_vocab = 1024, .values = std::vector<float>(12 * 1024)};
    ASSERT_EQ(bytes.size(), 10 + length + logits.values.size() * sizeof(float));
    std::memcpy(logits.values.data(), &bytes[10 + length], logits.values.size() * sizeof(float));
    EXPECT_THAT(logits, BitIdenticalTo(stock_logits(model, tokens, 8)));
}

TEST(PerplexityCommand, GivesTheNumberOfStocksTool) {
    if (!have_stock_tool("llama-perplexity")) GTEST_SKIP() << "llama-perplexity is not installed";
    for (const int n_ctx : {512, 128}) {
        const json report = json_of(
            {"perplexity", model, "-f", text_file, "-c", std::to_string(n_ctx), "-q", "-t", "2"});
        EXPECT_EQ(fmt::format("{:.4f}", report["perplexity"].get<double>()),
                  fmt::format("{:.4f}", stock_perplexity(model, text_file, n_ctx)));
    }
}

TEST(PerplexityCommand, GoesByThePlan) {
    const double identity = json_of({"perplexity", model, "-f", text_file, "-q"})["perplexity"];
    const double same = json_of(
        {"perplexity", model, "-f", text_file, "-q", "--repeat-layers", "0,0"})["perplexity"];
    const double half =
        json_of({"perplexity", model, "-f", text_file, "-q", "--layers", "0..7"})["perplexity"];
    EXPECT_EQ(identity, same);
    EXPECT_GT(half, 1.5 * identity);
}

TEST(BenchCommand, GivesARowPerPlanAndTestInEveryFormat) {
    const Words common{"bench", model, "-p",     "16", "-n",     "4",   "-r",     "2",      "-q",
                       "-t",    "1",   "--spec", "",   "--spec", "6,9", "--spec", "drop:12"};
    Words arguments = common;
    arguments.insert(arguments.end(), {"-o", "json"});
    const json rows = json::parse(output_of(arguments));
    ASSERT_EQ(rows.size(), 6U);
    Words tests;
    for (const json& row : rows) {
        tests.push_back(row["test"]);
        EXPECT_EQ(row["samples_ts"].size(), 2U);
        EXPECT_GT(row["avg_ts"].get<double>(), 0.0);
        EXPECT_EQ(row["logits_hash"].get<std::string>().size(), 16U);
    }
    EXPECT_THAT(tests, ElementsAre("pp16", "pp16", "pp16", "tg4", "tg4", "tg4"));
    EXPECT_EQ(rows[1]["plan"], "0..8,6..15");
    EXPECT_NE(rows[0]["logits_hash"], rows[1]["logits_hash"]);
    arguments = common;
    arguments.insert(arguments.end(), {"-o", "csv"});
    const std::string csv = output_of(arguments);
    EXPECT_EQ(std::ranges::count(csv, '\n'), 7);
    EXPECT_THAT(output_of(common), StartsWith("| model |"));
}

}  // namespace
}  // namespace pleat::test
