#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/pleat_terminal.h"
#include "support/pleat_tool.h"
#include "support/temp_file.h"

// `pleat chat` through a pipe and at a terminal.
namespace pleat::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

const std::string llama = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
const std::string gemma = PLEAT_MODELS_DIR "/pleat-demo-gemma3-12L-q4_0.gguf";
const std::string qwen = PLEAT_MODELS_DIR "/pleat-demo-qwen35-12L-q4_0.gguf";

Words operator+(Words left, const Words& right) {
    left.insert(left.end(), right.begin(), right.end());
    return left;
}

const Words greedy{"--temp", "0", "-t", "1", "-q"};

ToolRun chat(std::string_view input, const Words& flags = {}, const std::string& model = llama) {
    return run_pleat(Words{"chat", model} + greedy + flags, input);
}

/// What a chat without a fault writes.
std::string said(std::string_view input, const Words& flags = {},
                 const std::string& model = llama) {
    const ToolRun result = chat(input, flags, model);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return result.out;
}

/// The one line on stderr of a chat in which something failed, and which went on.
std::string fault(std::string_view input, const Words& flags = {}) {
    const ToolRun result = chat(std::string(input) + "\nWhat is 2 + 2?\n", flags);
    EXPECT_EQ(result.status, 1);
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
    EXPECT_THAT(result.out, EndsWith(said("What is 2 + 2?\n", flags)));
    return result.err;
}

json saved(const std::string& path) {
    std::ifstream file(path);
    return json::parse(file);
}

// ---------------------------------------------------------------- answers

TEST(Chat, TheFirstAnswerIsThatOfRun) {
    for (const std::string& model : {llama, gemma, qwen}) {
        for (const Words& sampling : {Words{"--temp", "0"}, Words{"-s", "7"}, Words{"-s", "42"}}) {
            for (const Words& more : {Words{}, Words{"-sys", "Be brief."}}) {
                const Words flags = Words{"-t", "1", "-q"} + sampling + more;
                const ToolRun run =
                    run_pleat(Words{"run", model, "--chat", "-p", "What is 12 + 30?"} + flags);
                const ToolRun answer =
                    run_pleat(Words{"chat", model} + flags, "What is 12 + 30?\n");
                EXPECT_EQ(run.status, 0) << run.err;
                EXPECT_EQ(answer.status, 0) << answer.err;
                EXPECT_EQ(answer.out, run.out) << model;
                EXPECT_EQ(answer.err, "");
            }
        }
    }
}

TEST(Chat, EachAnswerKnowsTheTurnsBefore) {
    const TempFile file(".json");
    const std::string output =
        said("The code is 7421.\nWhat is the code?\n/save " + file.path() + "\n");
    const json messages = saved(file.path());
    ASSERT_EQ(messages.size(), 4U);
    EXPECT_EQ(messages[0], json({{"role", "user"}, {"content", "The code is 7421."}}));
    EXPECT_EQ(messages[1]["role"], "assistant");
    EXPECT_EQ(messages[2]["content"], "What is the code?");
    EXPECT_EQ(output, messages[1]["content"].get<std::string>() + "\n" +
                          messages[3]["content"].get<std::string>() + "\n");
    EXPECT_NE(said("What is the code?\n"), messages[3]["content"].get<std::string>() + "\n");
}

/// "prompt:     9 tokens in 1.2 ms, ... (40 of 49 from the cache)"
std::pair<int, int> cached(const std::string& stats) {
    int n_cached = -1;
    int n_prompt = -1;
    const size_t at = stats.find(" from the cache");
    if (at != std::string::npos) {
        const size_t begin = stats.rfind('(', at);
        std::sscanf(stats.c_str() + begin, "(%d of %d", &n_cached, &n_prompt);
    }
    return {n_cached, n_prompt};
}

TEST(Chat, RunsOnlyWhatIsNewInTheConversation) {
    for (const std::string& model : {llama, gemma, qwen}) {
        const std::string stats =
            said("What is 12 + 30?\nWhat is 5 + 5?\n/stats\n", {"-n", "8"}, model);
        const auto [n_cached, n_prompt] = cached(stats);
        EXPECT_GT(n_cached, n_prompt / 2) << model << "\n" << stats;
        EXPECT_LT(n_cached, n_prompt) << stats;
    }
}

TEST(Chat, AnswersAreThoseOfAConversationReadAnew) {
    for (const std::string& model : {llama, gemma, qwen}) {
        const TempFile file(".json");
        const std::string question = "And what is 7 + 8?\n";
        const std::string before = said("What is 12 + 30?\n/save " + file.path() + "\n", {}, model);
        const std::string all = said("What is 12 + 30?\n" + question, {}, model);
        const ToolRun anew = chat("/load " + file.path() + "\n" + question, {}, model);
        EXPECT_EQ(all, before + anew.out) << model;
    }
}

// ---------------------------------------------------------------- plans

TEST(ChatPlan, ASwitchAnswersAsAChatThatStartedWithThePlan) {
    for (const std::string& model : {llama, gemma, qwen}) {
        const std::string question = "What is 7 + 8?\n";
        const ToolRun switched = chat("/plan 4,8\n" + question, {}, model);
        EXPECT_EQ(switched.status, 0) << switched.err;
        const std::string answer = said(question, {"--repeat-layers", "4,8"}, model);
        EXPECT_THAT(switched.out, EndsWith("\n" + answer)) << model;
        EXPECT_THAT(switched.out, StartsWith("plan")) << switched.out;
    }
}

TEST(ChatPlan, TheConversationGoesOnUnderTheNewPlan) {
    for (const std::string& model : {llama, qwen}) {
        const TempFile file(".json");
        const std::string first = "What is 12 + 30?\n";
        const std::string second = "What is 7 + 8?\n";
        said(first + "/save " + file.path() + "\n", {}, model);
        const ToolRun loaded =
            chat("/load " + file.path() + "\n" + second, {"--drop-attention", "7"}, model);
        const ToolRun switched = chat(first + "/plan drop:7\n" + second, {}, model);
        EXPECT_EQ(switched.status, 0) << switched.err;
        EXPECT_THAT(switched.out, EndsWith("\n" + loaded.out)) << model;
    }
}

TEST(ChatPlan, AloneShowsThePlanInUse) {
    EXPECT_THAT(said("/plan\n", {"--repeat-layers", "4,8"}), HasSubstr("0..7,4..15"));
    const std::string back = said("/plan 4,8\n/plan \"\"\n/plan\n");
    EXPECT_THAT(back.substr(back.rfind("plan:")), StartsWith("plan: 0..15 (identity)"));
}

TEST(ChatPlan, ABadSpecIsOneLineAndThePlanStays) {
    EXPECT_THAT(fault("/plan 4,99", {"--repeat-layers", "4,8"}),
                AllOf(HasSubstr("/plan \"4,99\""), HasSubstr("this model has 16 layers")));
    EXPECT_THAT(fault("/plan @/no/such/plan.json"), HasSubstr("/no/such/plan.json"));
}

// ---------------------------------------------------------------- commands

TEST(ChatCommands, UndoAndRetryAndClear) {
    const std::string question = "What is 12 + 30?\n";
    const std::string answer = said(question);
    EXPECT_EQ(said(question + "/retry\n"), answer + answer);
    const TempFile file(".json");
    said("One.\nTwo.\n/undo\n/save " + file.path() + "\n");
    EXPECT_EQ(saved(file.path()).size(), 2U);
    EXPECT_EQ(saved(file.path())[0]["content"], "One.");
    const std::string cleared =
        said("The code is 7421.\n/clear\n" + question + "/save! " + file.path() + "\n");
    EXPECT_THAT(cleared, EndsWith("\n" + answer));
    EXPECT_EQ(saved(file.path()).size(), 2U);
    EXPECT_THAT(fault("/undo"), HasSubstr("nothing to take back"));
    EXPECT_THAT(fault("/retry"), HasSubstr("no message"));
}

TEST(ChatCommands, SystemSetsTheSystemsMessage) {
    const std::string question = "What is 12 + 30?\n";
    EXPECT_EQ(said("/system Be brief.\n" + question), said(question, {"--system", "Be brief."}));
    EXPECT_EQ(said("/system\n/system Be brief.\n/clear\n/system\n/system \"\"\n/system\n"),
              "(none)\nBe brief.\n(none)\n");
}

TEST(ChatCommands, SetTakesTheFlagsOfSampling) {
    const std::string question = "Once upon a time\n";
    EXPECT_EQ(said("/set temp 0.9\n/set seed 7\n/set n 12\n" + question),
              said(question, {"--temp", "0.9", "-s", "7", "-n", "12"}));
    EXPECT_EQ(said("/set grammar root ::= \"yes\"\n" + question), "yes\n");
    EXPECT_EQ(said("/set logit-bias=46-inf\n/set n=12\n" + question),
              said(question, {"-l", "46-inf", "-n", "12"}));
    EXPECT_THAT(said("/set temp 0.25\n/set\n"), HasSubstr("\ntemp                 0.25\n"));
    EXPECT_THAT(fault("/set tmp 1"), HasSubstr("no setting \"tmp\""));
    EXPECT_THAT(fault("/set temp hot"), HasSubstr("temp"));
    EXPECT_THAT(fault("/set top-p 3"), HasSubstr("top-p"));
    EXPECT_THAT(fault("/set grammar root ::= ("), HasSubstr("grammar"));
    EXPECT_THAT(fault("/set temp"), HasSubstr("temp"));
}

TEST(ChatCommands, StatsSayWhatItTookAndWhatThePlanCosts) {
    const std::string stats = said("What is 2 + 2?\n/stats\n", {"--repeat-layers", "4,8"});
    for (const char* const part : {"tokens/s", "from the cache", "context:", "of 512 tokens",
                                   "cache ", "weights ", "0..7,4..15"}) {
        EXPECT_THAT(stats, HasSubstr(part));
    }
    EXPECT_THAT(said("/stats\n"), HasSubstr("answers:    0"));
}

TEST(ChatCommands, SaveNeverOverwritesUnasked) {
    const TempFile file(".json", "mine");
    EXPECT_THAT(fault("/save " + file.path()), HasSubstr("/save! " + file.path()));
    EXPECT_EQ(read_bytes(file.path()), "mine");
    said("/save! " + file.path() + "\n");
    EXPECT_EQ(saved(file.path()), json::array());
    EXPECT_THAT(fault("/save /no/such/folder/file"), HasSubstr("/no/such/folder/file"));
    EXPECT_THAT(fault("/save"), HasSubstr("name of a file"));
}

TEST(ChatCommands, LoadRefusesWhatIsNoConversation) {
    for (const char* const text :
         {"", "{", "7", "{}", R"({"messages": 7})", "[7]", R"([{"content": "x"}])",
          R"([{"role": 7, "content": "x"}])", R"([{"role": "user", "content": 7}])"}) {
        const TempFile file(".json", text);
        EXPECT_THAT(fault("/load " + file.path()), StartsWith("pleat: /load: ")) << text;
    }
    EXPECT_THAT(fault("/load /no/such/file"), HasSubstr("/no/such/file"));
    const TempFile request(".json", R"({"model": "x", "messages": [
        {"role": "system", "content": "Be brief."}]})");
    EXPECT_THAT(chat("/load " + request.path() + "\n/system\n").out, "Be brief.\n");
}

TEST(ChatCommands, AnUnknownOneIsNotSaid) {
    EXPECT_THAT(fault("/hlep"), AllOf(HasSubstr("/hlep"), HasSubstr("/help")));
    EXPECT_THAT(fault("/clear all"), HasSubstr("takes nothing"));
    EXPECT_THAT(said("/help\n"), AllOf(HasSubstr("/plan SPEC"), HasSubstr("/retry")));
    EXPECT_EQ(said("/exit\nWhat is 2 + 2?\n"), "");
}

// ---------------------------------------------------------------- input and limits

TEST(ChatInput, SeveralLinesAreOneMessage) {
    const TempFile file(".json");
    said("one\\\ntwo\n\"\"\"\n/three\n\nfour\n\"\"\"\n\n  \n/save " + file.path() + "\n",
         {"-n", "1"});
    const json messages = saved(file.path());
    ASSERT_EQ(messages.size(), 4U);
    EXPECT_EQ(messages[0]["content"], "one\ntwo");
    EXPECT_EQ(messages[2]["content"], "/three\n\nfour");
    const ToolRun open = chat("\"\"\"\nnever closed\n");
    EXPECT_EQ(open.status, 1);
    EXPECT_THAT(open.err, HasSubstr("\"\"\""));
}

TEST(ChatInput, BytesThatAreNoTextDoNoHarm) {
    const TempFile file(".json");
    said("\xFF\xFE caf\xC3\xA9\r\n/save " + file.path() + "\n", {"-n", "1"});
    EXPECT_EQ(saved(file.path())[0]["content"], "\xEF\xBF\xBD\xEF\xBF\xBD caf\xC3\xA9");
}

TEST(ChatLimits, AMessageThatDoesNotFitIsNotSent) {
    std::string words;
    for (int i = 0; i < 300; ++i) words += "cat ";
    EXPECT_THAT(fault(words, {"-c", "256"}),
                AllOf(HasSubstr("the context 256"), HasSubstr("/clear"), HasSubstr("-c")));
}

TEST(ChatLimits, AFullContextEndsTheAnswerAndSaysSo) {
    const ToolRun full =
        run_pleat({"chat", llama, "-c", "256", "-t", "1", "--temp", "0", "--ignore-eos"},
                  "Hello\nMore\n/clear\n/set n 4\nHello\n");
    EXPECT_EQ(full.status, 1) << "the second message had no room";
    EXPECT_THAT(full.err, AllOf(HasSubstr("the context of 256 tokens is full"),
                                HasSubstr("it was not sent"), HasSubstr("stopped after 4 tokens")));
    EXPECT_EQ(std::ranges::count(full.err, '\0'), 0);
}

TEST(ChatTemplate, CanBeGiven) {
    const TempFile file(".jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    const Words run{"run", llama, "-p", "The cat near", "--no-display-prompt", "-n", "8"};
    EXPECT_EQ(said("The cat near\n", {"--chat-template-file", file.path(), "-n", "8"}),
              run_pleat(run + greedy).out);
    const ToolRun bad = chat("x\n", {"--chat-template", "{% for %}"});
    EXPECT_EQ(bad.status, 1);
    EXPECT_EQ(bad.out, "");
    EXPECT_EQ(std::ranges::count(bad.err, '\n'), 1) << bad.err;
}

// ---------------------------------------------------------------- at a terminal

/// At its first prompt.
class Terminal : public PleatTerminal {
  public:
    explicit Terminal(const Words& flags = {})
        : PleatTerminal(Words{"chat", llama} + greedy + flags) {
        wait_for("> ");
        wait_for_editor();
    }
    /// Types a line and returns what appears until the next prompt, its echo included.
    std::string enter(const std::string& line) {
        wait_for_editor();
        type(line + "\n");
        return wait_for("\n> ");
    }
};

const std::string sum = "What is 12 + 30?";

std::string as_shown(std::string text) {  // a terminal's lines end with \r\n
    for (size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
        text.insert(at, "\r");
    }
    return text;
}

TEST(ChatTerminal, AnswersAndEndsWithCtrlD) {
    Terminal terminal;
    EXPECT_THAT(terminal.enter(sum), HasSubstr(as_shown(said(sum + "\n"))));
    terminal.wait_for_editor();
    terminal.type(ctrl_d);
    terminal.rest();
    EXPECT_EQ(terminal.wait(), 0);
}

TEST(ChatTerminal, EditsLinesAndRecallsEarlierOnes) {
    const TempFile file(".json");
    Terminal terminal({"-n", "1"});
    terminal.enter("aXc" + std::string(left) + "\x7F" + "b");  // backspace
    terminal.enter(std::string(up) + "d");
    terminal.enter("na\xC3\xAFve");
    terminal.enter("/save " + file.path());
    EXPECT_EQ(saved(file.path())[0]["content"], "abc");
    EXPECT_EQ(saved(file.path())[2]["content"], "abcd");
    EXPECT_EQ(saved(file.path())[4]["content"], "na\xC3\xAFve");
}

TEST(ChatTerminal, CtrlCClearsTheLineAndTwiceEnds) {
    Terminal terminal;
    terminal.type("half a li");
    terminal.wait_for("half a li");
    terminal.type(ctrl_c);
    terminal.wait_for("\n> ");
    terminal.wait_for_editor();
    terminal.type("\"\"\"\n");
    terminal.wait_for("\n. ");
    terminal.wait_for_editor();
    terminal.type(ctrl_c);
    terminal.wait_for("\n> ");  // it discarded something
    terminal.wait_for_editor();
    terminal.type(ctrl_c);
    // Two that follow each other end it; a message between begins the count anew.
    terminal.rest();
    EXPECT_EQ(terminal.wait(), 130);
}

TEST(ChatTerminal, CtrlCDiscardsSeveralLines) {
    Terminal terminal;
    terminal.type("\"\"\"\n");
    terminal.wait_for("\n. ");
    terminal.wait_for_editor();
    terminal.type(ctrl_c);
    terminal.wait_for("\n> ");
    EXPECT_THAT(terminal.enter(sum), HasSubstr(as_shown(said(sum + "\n"))));
}

TEST(ChatTerminal, CtrlCStopsAnAnswerAndTheChatGoesOn) {
    const TempFile file(".json");
    Terminal terminal({"--ignore-eos", "-c", "0"});
    terminal.type("Once upon a time\n");
    terminal.wait_for("\n");
    terminal.wait_for(" ");  // the answer is under way
    terminal.type(ctrl_c);
    EXPECT_THAT(terminal.wait_for("\n> "), HasSubstr("[stopped"));
    terminal.enter("/set ignore-eos false");
    terminal.enter("/save " + file.path());
    EXPECT_EQ(saved(file.path()).size(), 2U);
    EXPECT_THAT(terminal.enter("/stats"), HasSubstr("cancelled"));
    terminal.enter("/clear");
    EXPECT_THAT(terminal.enter(sum), HasSubstr(as_shown(said(sum + "\n"))));
}

TEST(ChatTerminal, ReasoningIsDimmed) {
    const TempFile jinja(".jinja",
                         "{% for m in messages %}{{ m.content }}{% endfor %}"
                         "{% if add_generation_prompt %}<think>{% endif %}{# </think> #}");
    const TempFile file(".json");
    Terminal terminal(
        {"--chat-template-file", jinja.path(), "--grammar", R"(root ::= "two plus two</think>4")"});
    const std::string shown = terminal.enter("2 + 2");
    EXPECT_THAT(shown, HasSubstr("\x1b[2mtwo plus two\x1b[0m"));
    EXPECT_THAT(shown, AllOf(HasSubstr("\n4\r\n"), Not(HasSubstr("think"))));
    terminal.enter("/save " + file.path());
    EXPECT_EQ(saved(file.path())[1]["content"], "4");
    EXPECT_EQ(saved(file.path())[1]["reasoning_content"], "two plus two");
}

/// Bytes of the model file that are mapped, and of the data a process has for itself.
std::pair<int, long> memory_of(pid_t pid) {
    std::ifstream maps(fmt::format("/proc/{}/maps", pid));
    int n_maps = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.find(".gguf") != std::string::npos) ++n_maps;
    }
    std::ifstream status(fmt::format("/proc/{}/status", pid));
    long data_kb = 0;
    for (std::string line; std::getline(status, line);) {
        std::sscanf(line.c_str(), "VmData: %ld", &data_kb);
    }
    return {n_maps, data_kb};
}

TEST(ChatTerminal, APlanSwitchLoadsNoWeightTwice) {
    if (!std::ifstream("/proc/self/maps")) GTEST_SKIP() << "there is no /proc here";
    Terminal terminal({"-c", "256"});
    terminal.enter(sum);
    const auto [n_maps, data_kb] = memory_of(terminal.pid());
    EXPECT_GT(n_maps, 0);
    for (const char* const plan : {"4,8", "0,0", "2,6", "0,0"}) {
        terminal.enter(fmt::format("/plan {}", plan));
    }
    terminal.enter(sum);
    const auto [n_maps_after, data_kb_after] = memory_of(terminal.pid());
    EXPECT_EQ(n_maps_after, n_maps);
    // The weights are 2.9 MiB.
    EXPECT_LT(data_kb_after, data_kb + 2048);
}

}  // namespace
}  // namespace pleat::test
