// What clients of llama-server and OpenAI get from `pleat serve`, beside what they get from stock.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "support/random_model.h"
#include "support/server_process.h"
#include "support/stock_server.h"

namespace pleat::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";

/// The events of a stream but for the last "[DONE]"; `done` tells whether that came.
std::vector<json> events_of(const std::string& body, bool* done = nullptr) {
    std::vector<json> events;
    if (done != nullptr) *done = false;
    size_t at = 0;
    while (at < body.size()) {
        const size_t end = body.find("\n\n", at);
        const std::string event = body.substr(at, end - at);
        at = end == std::string::npos ? body.size() : end + 2;
        EXPECT_EQ(event.substr(0, 6), "data: ");
        if (event == "data: [DONE]") {
            if (done != nullptr) *done = true;
        } else {
            events.push_back(json::parse(event.substr(6)));
        }
    }
    return events;
}

json message(const std::string& role, const std::string& content) {
    return {{"role", role}, {"content", content}};
}

/// One server of each kind for all tests.
class Serve : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        pleat = std::make_unique<ServerProcess>(
            std::vector<std::string>{model, "-c", "512", "-np", "4"});
    }
    static void TearDownTestSuite() { pleat.reset(); }

    static json answer(const std::string& path, const json& body) {
        const HttpResponse response = pleat->post(path, body);
        EXPECT_EQ(response.status, 200) << response.body;
        return response.json();
    }
    static std::vector<json> stream(const std::string& path, json body, bool* done = nullptr) {
        body["stream"] = true;
        const HttpResponse response = pleat->post(path, body);
        EXPECT_EQ(response.status, 200) << response.body;
        EXPECT_THAT(response.header("Content-Type"), HasSubstr("text/event-stream"));
        return events_of(response.body, done);
    }
    static json error(const std::string& path, const json& body, int status) {
        const HttpResponse response = pleat->post(path, body);
        EXPECT_EQ(response.status, status) << response.body;
        return response.json().at("error");
    }

    static std::unique_ptr<ServerProcess> pleat;
};
std::unique_ptr<ServerProcess> Serve::pleat;

/// The same, and stock beside it.
class ServeBesideStock : public Serve {
  protected:
    static void SetUpTestSuite() {
        Serve::SetUpTestSuite();
        if (have_stock_tool("llama-server")) {
            // Stock divides its context by its slots, and rounds otherwise when it decodes several
            // at once.
            stock = std::make_unique<StockServer>(
                std::vector<std::string>{"-m", model, "-c", "512", "-np", "1"});
        }
    }
    static void TearDownTestSuite() {
        stock.reset();
        Serve::TearDownTestSuite();
    }
    void SetUp() override {
        if (!stock) GTEST_SKIP() << "no llama-server of this release is installed";
    }

    static json stock_answer(const std::string& path, const json& body) {
        const HttpResponse response = stock->post(path, body);
        EXPECT_EQ(response.status, 200) << response.body;
        return response.json();
    }

    static std::unique_ptr<StockServer> stock;
};
std::unique_ptr<StockServer> ServeBesideStock::stock;

void expect_same_probabilities(const json& ours, const json& theirs) {
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
        EXPECT_EQ(ours[i].at("id"), theirs[i].at("id")) << i;
        EXPECT_EQ(ours[i].at("token"), theirs[i].at("token")) << i;
        EXPECT_EQ(ours[i].at("bytes"), theirs[i].at("bytes")) << i;
        EXPECT_NEAR(ours[i].at("logprob").get<double>(), theirs[i].at("logprob").get<double>(),
                    1e-4);
        if (ours[i].contains("top_logprobs")) {
            expect_same_probabilities(ours[i].at("top_logprobs"), theirs[i].at("top_logprobs"));
        }
    }
}

std::string kind_of(const json& value) { return value.is_number() ? "number" : value.type_name(); }

/// Every member of stock's that is not excepted is ours, too, and of the same type.
void expect_members(const json& ours, const json& theirs, const std::vector<std::string>& excepted,
                    const std::string& path = "") {
    if (theirs.is_array()) {
        if (!theirs.empty() && !ours.empty()) {
            expect_members(ours[0], theirs[0], excepted, path + "[0]");
        }
        return;
    }
    if (!theirs.is_object()) return;
    for (const auto& [name, value] : theirs.items()) {
        const std::string here = path + "/" + name;
        if (std::ranges::find(excepted, here) != excepted.end()) continue;
        if (!ours.contains(name)) {
            ADD_FAILURE() << here << " is missing";
            continue;
        }
        EXPECT_EQ(kind_of(ours.at(name)), kind_of(value)) << here;
        if (ours.at(name).type() == value.type()) {
            expect_members(ours.at(name), value, excepted, here);
        }
    }
}

const std::vector<json>& completion_bodies() {
    static const std::vector<json> bodies{
        {{"prompt", "The quick"}, {"n_predict", 24}, {"temperature", 0}},
        {{"prompt", "The old"}, {"n_predict", 40}, {"temperature", 0}, {"stop", {"of"}}},
        {{"prompt", "<|user|>\nWhat is 2 + 2?<|end|>\n<|assistant|>\n"}, {"temperature", 0}},
        {{"prompt", {5, "old", 6}}, {"n_predict", 12}, {"temperature", 0}},
        {{"prompt", ""}, {"n_predict", 12}, {"temperature", 0}},
        {{"prompt", "The old"}, {"n_predict", 40}, {"seed", 7}, {"temperature", 1.0}},
        {{"prompt", "The old"}, {"n_predict", 40}, {"seed", 8}, {"samplers", "kt"}, {"top_k", 5}},
        {{"prompt", "A dog"},
         {"n_predict", 30},
         {"temperature", 0},
         {"repeat_penalty", 1.3},
         {"frequency_penalty", 0.5}},
        {{"prompt", "A dog"}, {"n_predict", 10}, {"temperature", 0}, {"logit_bias", {{46, false}}}},
        {{"prompt", "A dog"}, {"n_predict", 20}, {"temperature", 0}, {"ignore_eos", true}},
        {{"prompt", "The code of Vera is"},
         {"n_predict", 12},
         {"temperature", 0},
         {"grammar", "root ::= \" \" [0-9]+ \".\""}},
        {{"prompt", "x"}, {"n_predict", 40}, {"seed", 3}, {"mirostat", 2}},
    };
    return bodies;
}

TEST_F(ServeBesideStock, CompletionsAreTheSame) {
    for (json body : completion_bodies()) {
        SCOPED_TRACE(body.dump());
        body["return_tokens"] = true;
        body["n_probs"] = 3;
        body["cache_prompt"] = false;
        const json ours = answer("/completion", body);
        const json theirs = stock_answer("/completion", body);
        for (const char* const name : {"content", "tokens", "stop_type", "stopping_word",
                                       "tokens_predicted", "tokens_evaluated", "tokens_cached",
                                       "prompt", "has_new_line", "truncated", "stop", "index"}) {
            EXPECT_EQ(ours.at(name), theirs.at(name)) << name;
        }
        json probabilities = ours.at("completion_probabilities");
        // Without those that the stop string is in.
        EXPECT_EQ(probabilities.size() < ours.at("tokens").size(), ours.at("stop_type") == "word");
        // Stock leaves out as many as the stop string has tokens when it is written alone.
        while (ours.at("stop_type") == "word" &&
               probabilities.size() > theirs.at("completion_probabilities").size()) {
            probabilities.erase(probabilities.size() - 1);
        }
        expect_same_probabilities(probabilities, theirs.at("completion_probabilities"));
        expect_members(
            ours, theirs,
            {"/generation_settings/logit_bias[0]/bias", "/generation_settings/speculative.types",
             "/generation_settings/backend_sampling", "/generation_settings/chat_format",
             "/generation_settings/reasoning_format", "/generation_settings/reasoning_in_content",
             "/generation_settings/generation_prompt", "/generation_settings/grammar_lazy",
             "/generation_settings/grammar_triggers", "/generation_settings/preserved_tokens"});
    }
}

TEST_F(ServeBesideStock, SettingsAreUnderstoodTheSame) {
    const json body = {{"prompt", "a"},
                       {"n_predict", 1},
                       {"temperature", 0.5},
                       {"top_k", 7},
                       {"top_p", 0.8},
                       {"min_p", 0.1},
                       {"typical_p", 0.9},
                       {"repeat_last_n", 16},
                       {"repeat_penalty", 1.1},
                       {"xtc_probability", 0.1},
                       {"dry_multiplier", 0.8},
                       {"dry_base", 1.5},
                       {"mirostat_tau", 4.0},
                       {"seed", 5},
                       {"stop", {"x", "y"}},
                       {"samplers", {"top_k", "temperature"}},
                       {"dry_sequence_breakers", {"!"}},
                       {"dynatemp_range", 0.25},
                       {"top_n_sigma", 2.0},
                       {"min_keep", 2},
                       {"presence_penalty", 0.5},
                       {"ignore_eos", true}};
    const json ours = answer("/completion", body).at("generation_settings");
    const json theirs = stock_answer("/completion", body).at("generation_settings");
    for (const auto& [name, value] : theirs.items()) {
        // Stock adds the end tokens to the biases.
        if (!ours.contains(name) || name == "logit_bias") continue;
        EXPECT_EQ(ours.at(name), value) << name;
    }
}

TEST_F(ServeBesideStock, OpenAIsCompletionsAreTheSame) {
    const json body = {{"prompt", {"The quick", "The old"}},
                       {"max_tokens", 12},
                       {"temperature", 0},
                       {"logprobs", 2}};
    const json ours = answer("/v1/completions", body);
    const json theirs = stock_answer("/v1/completions", body);
    ASSERT_EQ(ours.at("choices").size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
        const json& a = ours.at("choices")[i];
        const json& b = theirs.at("choices")[i];
        EXPECT_EQ(a.at("text"), b.at("text"));
        EXPECT_EQ(a.at("index"), b.at("index"));
        EXPECT_EQ(a.at("finish_reason"), b.at("finish_reason"));
        expect_same_probabilities(a.at("logprobs").at("content"), b.at("logprobs").at("content"));
    }
    expect_members(ours, theirs, {});
}

TEST_F(ServeBesideStock, ChatsAreTheSame) {
    const json body = {{"messages", {message("user", "What is 2 + 2?")}},
                       {"max_tokens", 20},
                       {"temperature", 0},
                       {"logprobs", true},
                       {"top_logprobs", 4}};
    const json ours = answer("/v1/chat/completions", body);
    const json theirs = stock_answer("/v1/chat/completions", body);
    const json& a = ours.at("choices")[0];
    const json& b = theirs.at("choices")[0];
    EXPECT_EQ(a.at("message"), b.at("message"));
    EXPECT_EQ(a.at("finish_reason"), b.at("finish_reason"));
    expect_same_probabilities(a.at("logprobs").at("content"), b.at("logprobs").at("content"));
    EXPECT_EQ(ours.at("usage").at("prompt_tokens"), theirs.at("usage").at("prompt_tokens"));
    EXPECT_EQ(ours.at("usage").at("completion_tokens"), theirs.at("usage").at("completion_tokens"));
    expect_members(ours, theirs, {});
}

TEST_F(ServeBesideStock, TextsAreTheSame) {
    for (const json& body : std::vector<json>{
             {{"content", "h\u00e9llo <|end|> world"}},
             {{"content", "h\u00e9llo <|end|>"}, {"add_special", true}, {"parse_special", false}},
             {{"content", "h\u00e9llo"}, {"with_pieces", true}},
             {{"content", ""}}}) {
        EXPECT_EQ(answer("/tokenize", body), stock_answer("/tokenize", body)) << body;
    }
    const json tokens = {{"tokens", {104, 195, 169, 1021}}};
    EXPECT_EQ(answer("/detokenize", tokens), stock_answer("/detokenize", tokens));
    const json chat = {{"messages", {message("system", "Be short."), message("user", "Hi")}}};
    EXPECT_EQ(answer("/apply-template", chat), stock_answer("/apply-template", chat));
    const json begun = {{"messages", {message("user", "Hi"), message("assistant", "The code")}}};
    EXPECT_EQ(answer("/apply-template", begun), stock_answer("/apply-template", begun));
}

TEST_F(ServeBesideStock, AChatIsCutBetweenCharacters) {
    for (const int n : {1, 2, 3, 4}) {
        const json body = {{"messages", {message("user", "Hi")}},
                           {"max_tokens", n},
                           {"temperature", 0},
                           {"grammar", "root ::= \"a\u00e9\u20ac\""}};
        EXPECT_EQ(answer("/v1/chat/completions", body).at("choices")[0].at("message"),
                  stock_answer("/v1/chat/completions", body).at("choices")[0].at("message"))
            << n;
    }
}

TEST_F(ServeBesideStock, WhatIsToldOfTheServerHasItsMembers) {
    const auto both = [&](const std::string& path, const std::vector<std::string>& excepted) {
        expect_members(pleat->get(path).json(), stock->get(path).json(), excepted);
    };
    both("/health", {});
    both("/v1/models", {"/data[0]/meta/vocab_type"});
    both("/slots", {"[0]/id_task", "[0]/params", "[0]/next_token[0]/has_new_line"});
    both("/props",
         {"/media_marker", "/chat_template_caps", "/ui", "/ui_settings", "/cors_proxy_enabled",
          "/modalities/video", "/default_generation_settings/params/chat_format",
          "/default_generation_settings/params/reasoning_format",
          "/default_generation_settings/params/reasoning_in_content",
          "/default_generation_settings/params/generation_prompt",
          "/default_generation_settings/params/speculative.types",
          "/default_generation_settings/params/backend_sampling"});
    const json ours = pleat->get("/props").json();
    const json theirs = stock->get("/props").json();
    for (const char* const name : {"chat_template", "bos_token", "eos_token", "model_ftype"}) {
        EXPECT_EQ(ours.at(name), theirs.at(name)) << name;
    }
    const json meta = pleat->get("/v1/models").json().at("data")[0].at("meta");
    const json stock_meta = stock->get("/v1/models").json().at("data")[0].at("meta");
    for (const char* const name :
         {"n_vocab", "n_ctx_train", "n_embd", "n_params", "size", "ftype"}) {
        EXPECT_EQ(meta.at(name), stock_meta.at(name)) << name;
    }
}

TEST_F(ServeBesideStock, MetricsHaveItsNames) {
    const std::string ours = pleat->get("/metrics").body;
    std::istringstream lines(stock->get("/metrics").body);
    for (std::string line; std::getline(lines, line);) {
        // Nothing is drafted here.
        if (!line.starts_with("# TYPE") || line.find("spec_decode") != std::string::npos) continue;
        EXPECT_THAT(ours, HasSubstr(line + "\n"));
    }
}

TEST_F(ServeBesideStock, APromptThatIsTooLongIsTheSameError) {
    const json body = {{"prompt", std::vector<int>(600, 104)}, {"n_predict", 1}};
    const json ours = error("/completion", body, 400);
    const json theirs = stock->post("/completion", body).json().at("error");
    for (const char* const name : {"code", "type", "n_prompt_tokens", "n_ctx"}) {
        EXPECT_EQ(ours.at(name), theirs.at(name)) << name;
    }
}

TEST_F(ServeBesideStock, StreamsHaveItsMembers) {
    const json chat = {{"messages", {message("user", "Hi")}},
                       {"max_tokens", 4},
                       {"temperature", 0},
                       {"stream", true},
                       {"stream_options", {{"include_usage", true}}}};
    const json completion = {
        {"prompt", "The"}, {"n_predict", 3}, {"temperature", 0}, {"stream", true}, {"n_probs", 1}};
    for (const auto& [path, body] :
         {std::pair(std::string("/v1/chat/completions"), chat), {"/completion", completion}}) {
        SCOPED_TRACE(path);
        bool our_done = false;
        bool their_done = false;
        const auto ours = events_of(pleat->post(path, body).body, &our_done);
        const auto theirs = events_of(stock->post(path, body).body, &their_done);
        EXPECT_EQ(our_done, their_done);
        // How many tokens an event has depends on who is faster.
        ASSERT_GE(ours.size(), 2U);
        expect_members(ours.front(), theirs.front(), {});
        expect_members(ours.back(), theirs.back(), {"/generation_settings"});
        if (!our_done) continue;
        ASSERT_GE(ours.size(), 4U);
        expect_members(ours[1], theirs[1], {});
        expect_members(ours[ours.size() - 2], theirs[theirs.size() - 2], {});
    }
}

// ---- What holds without stock.

TEST_F(Serve, StreamedCompletionsEqualWholeOnes) {
    const json body = {{"prompt", {"The quick", "The old"}},
                       {"n_predict", 16},
                       {"seed", 5},
                       {"n_probs", 2},
                       {"return_tokens", true}};
    const json whole = answer("/completion", body);
    std::vector<std::string> texts(2);
    std::vector<json> tokens(2, json::array());
    std::vector<json> probs(2, json::array());
    size_t n_ends = 0;
    for (const json& event : stream("/completion", body)) {
        const size_t i = event.at("index");
        texts[i] += event.at("content").get<std::string>();
        tokens[i].insert(tokens[i].end(), event.at("tokens").begin(), event.at("tokens").end());
        if (event.at("stop") == true) {
            ++n_ends;
            EXPECT_EQ(event.at("stop_type"), whole[i].at("stop_type"));
            EXPECT_EQ(event.at("tokens_predicted"), whole[i].at("tokens_predicted"));
        } else {
            for (const json& it : event.at("completion_probabilities")) probs[i].push_back(it);
        }
    }
    EXPECT_EQ(n_ends, 2U);
    for (size_t i = 0; i < 2; ++i) {
        EXPECT_EQ(texts[i], whole[i].at("content"));
        EXPECT_EQ(tokens[i], whole[i].at("tokens"));
        EXPECT_EQ(probs[i], whole[i].at("completion_probabilities"));
    }
}

TEST_F(Serve, StreamedTextCompletionsEqualWholeOnes) {
    const json body = {{"prompt", "The quick"}, {"max_tokens", 16}, {"seed", 5}, {"n", 2},
                       {"logprobs", 1},         {"stop", {"zzz"}}};
    const json whole = answer("/v1/completions", body);
    std::vector<std::string> texts(2);
    std::vector<json> offsets(2, json::array());
    std::vector<json> reasons(2);
    bool done = false;
    for (const json& event : stream("/v1/completions", body, &done)) {
        const json& choice = event.at("choices").at(0);
        const size_t i = choice.at("index");
        texts[i] += choice.at("text").get<std::string>();
        if (!choice.at("finish_reason").is_null()) reasons[i] = choice.at("finish_reason");
        if (choice.at("logprobs").is_null()) continue;
        for (const json& it : choice.at("logprobs").at("text_offset")) offsets[i].push_back(it);
    }
    EXPECT_TRUE(done);
    for (size_t i = 0; i < 2; ++i) {
        const json& choice = whole.at("choices")[i];
        EXPECT_EQ(texts[i], choice.at("text"));
        EXPECT_EQ(reasons[i], choice.at("finish_reason"));
        EXPECT_EQ(offsets[i], choice.at("logprobs").at("text_offset"));
    }
}

TEST_F(Serve, StreamedChatsEqualWholeOnes) {
    const json body = {{"messages", {message("user", "What is 2 + 2?")}},
                       {"max_tokens", 16},
                       {"seed", 5},
                       {"n", 2},
                       {"logprobs", true},
                       {"top_logprobs", 1}};
    const json whole = answer("/v1/chat/completions", body);
    std::vector<std::string> texts(2);
    std::vector<json> probs(2, json::array());
    std::vector<json> reasons(2);
    bool done = false;
    for (const json& event : stream("/v1/chat/completions", body, &done)) {
        const json& choice = event.at("choices").at(0);
        const size_t i = choice.at("index");
        const json& delta = choice.at("delta");
        if (delta.contains("content") && delta.at("content").is_string()) {
            texts[i] += delta.at("content").get<std::string>();
        }
        if (!choice.at("finish_reason").is_null()) reasons[i] = choice.at("finish_reason");
        if (!choice.contains("logprobs")) continue;
        for (const json& it : choice.at("logprobs").at("content")) probs[i].push_back(it);
    }
    EXPECT_TRUE(done);
    for (size_t i = 0; i < 2; ++i) {
        const json& choice = whole.at("choices")[i];
        EXPECT_EQ(texts[i], choice.at("message").at("content"));
        EXPECT_EQ(reasons[i], choice.at("finish_reason"));
        EXPECT_EQ(probs[i], choice.at("logprobs").at("content"));
    }
}

TEST_F(Serve, UsageComesLastWhenItIsAskedFor) {
    json body = {{"messages", {message("user", "Hi")}}, {"max_tokens", 3}, {"n", 2}};
    for (const json& event : stream("/v1/chat/completions", body)) {
        EXPECT_FALSE(event.contains("usage"));
    }
    body["stream_options"] = {{"include_usage", true}};
    const auto events = stream("/v1/chat/completions", body);
    EXPECT_EQ(events.back().at("choices"), json::array());
    const json& usage = events.back().at("usage");
    EXPECT_EQ(usage.at("total_tokens").get<int>(),
              usage.at("prompt_tokens").get<int>() + usage.at("completion_tokens").get<int>());
    EXPECT_EQ(error("/v1/chat/completions", body, 400).at("param"), "stream_options");
}

TEST_F(Serve, AnswerIHasTheSeedPlusI) {
    json body = {{"prompt", "The old"}, {"max_tokens", 16}, {"seed", 40}, {"n", 3}};
    const json together = answer("/v1/completions", body).at("choices");
    body.erase("n");
    std::set<std::string> texts;
    for (int i = 0; i < 3; ++i) {
        body["seed"] = 40 + i;
        EXPECT_EQ(together.at(i).at("text"),
                  answer("/v1/completions", body).at("choices")[0].at("text"));
        texts.insert(together.at(i).at("text"));
    }
    EXPECT_GT(texts.size(), 1U);
}

TEST_F(Serve, RequestsAtTheSameTimeAreAnsweredAsAlone) {
    std::vector<json> bodies;
    for (const char* const prompt :
         {"The quick", "The old", "A dog", "In the", "The code of Vera", "She", "It was", "Rain"}) {
        bodies.push_back({{"prompt", prompt}, {"n_predict", 32}, {"temperature", 0}});
    }
    std::vector<std::string> alone;
    for (const json& body : bodies) alone.push_back(answer("/completion", body).at("content"));
    std::vector<std::future<json>> together;
    for (const json& body : bodies) {
        together.push_back(
            std::async(std::launch::async, [&] { return answer("/completion", body); }));
    }
    for (size_t i = 0; i < bodies.size(); ++i) {
        EXPECT_EQ(together[i].get().at("content"), alone[i]) << bodies[i];
    }
}

TEST_F(Serve, ABeginningThatIsCachedIsUsedAndChangesNothing) {
    std::vector<int> prompt;
    for (int i = 0; i < 300; ++i) prompt.push_back(32 + i * 7 % 900);
    const json body = {{"prompt", prompt}, {"n_predict", 12}, {"temperature", 0}};
    const json first = answer("/completion", body);
    const json second = answer("/completion", body);
    EXPECT_EQ(first.at("timings").at("cache_n"), 0);
    const size_t cached = second.at("timings").at("cache_n");
    EXPECT_GE(cached, 128U);
    EXPECT_EQ(second.at("timings").at("prompt_n"), 300 - cached);
    EXPECT_EQ(second.at("content"), first.at("content"));
    json fresh = body;
    fresh["cache_prompt"] = false;
    EXPECT_EQ(answer("/completion", fresh).at("timings").at("cache_n"), 0);
    const json usage = answer("/v1/completions", body).at("usage");
    EXPECT_EQ(usage.at("prompt_tokens_details").at("cached_tokens"), cached);
}

TEST_F(Serve, ConstraintsHold) {
    const json schema = {{"type", "object"},
                         {"properties", {{"n", {{"type", "integer"}}}}},
                         {"required", {"n"}},
                         {"additionalProperties", false}};
    const json format = {{"type", "json_schema"},
                         {"json_schema", {{"name", "x"}, {"schema", schema}}}};
    const json chat = answer("/v1/chat/completions", {{"messages", {message("user", "Number?")}},
                                                      {"response_format", format},
                                                      {"max_tokens", 100},
                                                      {"seed", 1}});
    const std::string content = chat.at("choices")[0].at("message").at("content");
    EXPECT_TRUE(json::parse(content).at("n").is_number_integer()) << content;
    const json native = answer(
        "/completion", {{"prompt", "x"}, {"json_schema", schema}, {"n_predict", 100}, {"seed", 1}});
    EXPECT_TRUE(json::parse(native.at("content").get<std::string>()).contains("n"));
}

TEST_F(Serve, FieldsThatAreNotOfferedAreNamed) {
    EXPECT_EQ(error("/v1/completions", {{"prompt", "a"}, {"echo", true}}, 400).at("param"), "echo");
    EXPECT_EQ(error("/completion", {{"prompt", "a"}, {"lora", {{{"id", 0}}}}}, 400).at("param"),
              "lora");
    EXPECT_EQ(error("/v1/completions", {{"prompt", "a"}, {"logprobs", 21}}, 400).at("param"),
              "logprobs");
    EXPECT_EQ(error("/completion", json::object(), 400).at("param"), "prompt");
    EXPECT_EQ(error("/completion", {{"prompt", "a"}, {"id_slot", 4}}, 400).at("param"), "id_slot");
    EXPECT_EQ(error("/infill", json::object(), 501).at("type"), "not_supported_error");
    EXPECT_EQ(answer("/completion", {{"prompt", "a"}, {"n_predict", 1}, {"user", "u"}})
                  .at("tokens_predicted"),
              1);
}

TEST_F(Serve, GrammarsThatAreWrongAreTheClientsFault) {
    for (const std::string& grammar :
         {std::string("root ::= ("), std::string("root ::= root \"a\""),
          "root ::= " + std::string(100'000, '(')}) {
        error("/completion", {{"prompt", "a"}, {"grammar", grammar}}, 400);
    }
}

TEST_F(Serve, OnePlanAnswersToAnyNameWithItsOwn) {
    const std::string name = pleat->get("/v1/models").json().at("data")[0].at("id");
    EXPECT_EQ(name, "pleat-demo-llama-16L-q4_0");
    const json body = {{"prompt", "a"}, {"max_tokens", 1}, {"model", "gpt-4"}};
    EXPECT_EQ(answer("/v1/completions", body).at("model"), name);
    EXPECT_EQ(pleat->get("/v1/models/" + name).json().at("id"), name);
}

// ---- Several plans.

class ServeVariants : public testing::Test {
  protected:
    static std::vector<std::string> arguments() {
        return {model,   "-c",        "512",       "-np",       "2",          "--variant",
                "base=", "--variant", "deep=6,10", "--variant", "lean=drop:5"};
    }
    static json body(const std::string& name, const std::string& prompt) {
        return {{"model", name}, {"prompt", prompt}, {"max_tokens", 24}, {"temperature", 0}};
    }
};

TEST_F(ServeVariants, AreAnsweredAsAloneHoweverTheyAreMixed) {
    const std::vector<std::pair<std::string, std::string>> specs{
        {"base", ""}, {"deep", "6,10"}, {"lean", "drop:5"}};
    const std::vector<std::string> prompts{"The quick", "The old"};
    std::map<std::string, std::string> alone;
    for (const auto& [name, spec] : specs) {
        const ServerProcess one(
            {model, "-c", "512", "--variant", std::string(name) + "=" + std::string(spec)});
        for (const std::string& prompt : prompts) {
            alone[name + prompt] =
                one.post("/v1/completions", body(name, prompt)).json().at("choices")[0].at("text");
        }
    }
    EXPECT_NE(alone["baseThe old"], alone["deepThe old"]);
    const ServerProcess all(arguments());
    std::vector<std::pair<std::string, std::future<HttpResponse>>> together;
    for (int round = 0; round < 2; ++round) {
        for (const std::string& prompt : prompts) {
            for (const auto& [name, spec] : specs) {
                together.emplace_back(name + prompt, std::async(std::launch::async, [&, n = name] {
                                          return all.post("/v1/completions", body(n, prompt));
                                      }));
            }
        }
    }
    for (auto& [key, response] : together) {
        const json answer = response.get().json();
        EXPECT_EQ(answer.at("choices")[0].at("text"), alone.at(key)) << key;
        EXPECT_EQ(answer.at("model"), key.substr(0, 4));
    }
}

TEST_F(ServeVariants, AreModelsWithPlansAndCosts) {
    const ServerProcess server(arguments());
    const json data = server.get("/v1/models").json().at("data");
    ASSERT_EQ(data.size(), 3U);
    EXPECT_EQ(data[0].at("id"), "base");
    EXPECT_EQ(data[0].at("identity"), true);
    EXPECT_EQ(data[1].at("id"), "deep");
    EXPECT_EQ(data[1].at("plan"), "0..9,6..15");
    EXPECT_NE(data[1].at("plan_hash"), data[0].at("plan_hash"));
    EXPECT_EQ(data[1].at("costs").at("n_pass"), 20);
    EXPECT_EQ(data[1].at("costs").at("weight_resident_bytes"),
              data[0].at("costs").at("weight_resident_bytes"));
    EXPECT_EQ(data[1].at("costs").at("ratios").at("kv_bytes_per_token"), 1.25);
    EXPECT_LT(data[2].at("costs").at("kv_bytes_per_token"),
              data[0].at("costs").at("kv_bytes_per_token"));
    EXPECT_EQ(server.get("/v1/models/deep").json(), data[1]);

    const HttpResponse unknown = server.post("/v1/completions", body("gpt-4", "a"));
    EXPECT_EQ(unknown.status, 404);
    EXPECT_EQ(unknown.json().at("error").at("message"),
              "there is no model \"gpt-4\"; there are base, deep, lean");
    EXPECT_EQ(server.get("/v1/models/gpt-4").status, 404);

    json unnamed = body("", "a");
    unnamed.erase("model");
    const json first = server.post("/v1/completions", unnamed).json();
    EXPECT_EQ(first.at("model"), "base");
    const json deep = server.post("/v1/completions", body("deep", "a")).json();
    EXPECT_THAT(deep.at("system_fingerprint").get<std::string>(),
                HasSubstr(data[1].at("plan_hash").get<std::string>()));
    EXPECT_NE(deep.at("system_fingerprint"), first.at("system_fingerprint"));
}

/// Memory of a process that is no file's.
uint64_t anonymous_bytes(const ServerProcess& server) {
    const std::string status = read_bytes(fmt::format("/proc/{}/status", server.pid()));
    const size_t at = status.find("RssAnon:");
    if (at == std::string::npos) return 0;
    return std::stoull(status.substr(at + 8)) * 1024;
}

uint64_t metric(const ServerProcess& server, const std::string& name) {
    const std::string text = server.get("/metrics").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size() + 2));
}

TEST_F(ServeVariants, ShareTheWeights) {
    const RandomModel shape{.n_layer = 8, .n_embd = 1024, .n_ff = 2816, .tokenizer = true};
    const std::string file = make_model(shape, GGML_TYPE_Q4_0).path();
    const std::vector<std::string> one{file, "-c", "256", "-np", "1", "--variant", "base="};
    std::vector<std::string> three = one;
    for (const char* const more : {"--variant", "deep=2,6", "--variant", "lean=drop:1,3"}) {
        three.emplace_back(more);
    }
    const auto measured = [&](const std::vector<std::string>& arguments) {
        const ServerProcess server(arguments);
        const json models = server.get("/v1/models").json();
        for (const json& it : models.at("data")) {
            const json body = {{"model", it.at("id")}, {"prompt", {1, 2, 3}}, {"max_tokens", 2}};
            EXPECT_EQ(server.post("/v1/completions", body).status, 200);
        }
        return std::pair(anonymous_bytes(server), metric(server, "pleat:weight_bytes"));
    };
    const auto [rss_of_one, weights_of_one] = measured(one);
    const auto [rss_of_three, weights_of_three] = measured(three);
    if (rss_of_one == 0) GTEST_SKIP() << "this system does not tell a process's memory";
    EXPECT_GT(weights_of_one, 40U << 20);
    EXPECT_EQ(weights_of_three, weights_of_one);
    // Two more caches (4 and 6 MiB) and what their graphs need, but not the weights.
    EXPECT_LT(rss_of_three - rss_of_one, weights_of_one / 2)
        << rss_of_one << " " << rss_of_three << " " << weights_of_one;
}

// ---- Embeddings.

class EmbeddingsBesideStock : public testing::TestWithParam<const char*> {};

TEST_P(EmbeddingsBesideStock, AreTheSame) {
    if (!have_stock_tool("llama-server")) {
        GTEST_SKIP() << "no llama-server of this release is installed";
    }
    const std::string pooling = GetParam();
    const ServerProcess pleat({model, "-c", "512", "--pooling", pooling});
    const StockServer stock(
        {"-m", model, "-c", "512", "-np", "1", "--embeddings", "--pooling", pooling});
    const json body = {{"input", {"The quick brown fox", "The code of Vera is 4160."}}};
    const std::string path = pooling == "none" ? "/embeddings" : "/v1/embeddings";
    const HttpResponse response = pleat.post(path, body);
    ASSERT_EQ(response.status, 200) << response.body;
    const json ours = response.json();
    const json theirs = stock.post(path, body).json();
    expect_members(ours, theirs, {});
    const json& our_rows = pooling == "none" ? ours : ours.at("data");
    const json& their_rows = pooling == "none" ? theirs : theirs.at("data");
    ASSERT_EQ(our_rows.size(), 2U);
    for (size_t i = 0; i < 2; ++i) {
        json a = our_rows[i].at("embedding");
        json b = their_rows[i].at("embedding");
        if (pooling != "none") {
            a = json::array({a});
            b = json::array({b});
        }
        ASSERT_EQ(a.size(), b.size());
        for (size_t row = 0; row < a.size(); ++row) {
            ASSERT_EQ(a[row].size(), b[row].size());
            for (size_t k = 0; k < a[row].size(); ++k) {
                ASSERT_NEAR(a[row][k].get<double>(), b[row][k].get<double>(), 1e-4)
                    << i << " " << row << " " << k;
            }
        }
    }
    if (pooling == "none") {
        EXPECT_EQ(pleat.post("/v1/embeddings", body).status, 400);
    } else {
        EXPECT_EQ(ours.at("usage"), theirs.at("usage"));
    }
}

INSTANTIATE_TEST_SUITE_P(Pooling, EmbeddingsBesideStock,
                         testing::Values("mean", "last", "cls", "none"),
                         [](const auto& it) { return std::string(it.param); });

}  // namespace
}  // namespace pleat::test
