#include <gmock/gmock.h>

#include <csignal>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include "base/error.h"
#include "support/pleat_tool.h"
#include "support/server_process.h"
#include "support/temp_file.h"

// The server as clients meet it that break off, dawdle, flood or lie. What of it needs no model is
// in src/serve/http_server_test.cpp.
namespace pleat::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

const std::string demo_model = std::string(PLEAT_MODELS_DIR) + "/pleat-demo-llama-16L-q4_0.gguf";

/// So long that only a cancel ends an endless stream within a test's patience.
const std::vector<std::string> long_context{"-c", "131072"};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more = {}) {
    arguments.insert(arguments.begin(), demo_model);
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
}

std::string stream_text(int n_predict, const json& more = json::object()) {
    json body = {{"prompt", "The cat near the tower"},
                 {"n_predict", n_predict},
                 {"ignore_eos", true},
                 {"stream", true}};
    body.update(more);
    return ServerProcess::post_text("/completion", body.dump(), "Connection: close\r\n");
}
const std::string endless_stream = stream_text(-1);
constexpr const char* first_event = "data: {";

bool complete(const std::string& stream) { return stream.ends_with("\r\n0\r\n\r\n"); }

size_t busy_slots(const ServerProcess& server) {
    size_t busy = 0;
    for (const json& slot : server.get("/slots").json()) {
        if (slot.at("is_processing").get<bool>()) ++busy;
    }
    return busy;
}

/// How many requests wait for a slot.
bool waiting(const ServerProcess& server, int how_many) {
    const std::string line = "\nllamacpp:requests_deferred " + std::to_string(how_many) + "\n";
    return server.get("/metrics").body.find(line) != std::string::npos;
}

std::string answer_text(const ServerProcess& server) {
    return server.post("/completion", {{"prompt", "The cat"}, {"n_predict", 8}, {"temperature", 0}})
        .json()
        .at("content");
}

TEST(ServeFaults, TwoHundredIdleConnectionsHoldNobodyUp) {
    ServerProcess server(with({}));
    const std::string alone = answer_text(server);
    std::deque<RawClient> idle;
    for (int i = 0; i < 200; ++i) idle.emplace_back(server.port());
    for (int i = 0; i < 100; ++i)
        idle[static_cast<size_t>(i)].send("POST /completion HTTP/1.1\r\n");
    for (int i = 0; i < 5; ++i) EXPECT_EQ(answer_text(server), alone);
    EXPECT_EQ(server.stop().status, 0);
}

TEST(ServeFaults, ClientsThatDawdleAreCutOff) {
    const ServerProcess server(with({"--header-timeout", "0.2", "--timeout", "0.2"}));
    RawClient slow_head = server.connect();
    EXPECT_EQ(read_response(slow_head.send("GET /health HTT").read_all()).status, 408);
    RawClient slow_body = server.connect();
    slow_body.send(
        "POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        "Content-Length: 100\r\n\r\n{");
    EXPECT_EQ(read_response(slow_body.read_all()).status, 408);
    EXPECT_EQ(server.get("/health").status, 200);
}

TEST(ServeFaults, MoreConnectionsThanMayBeFindRoomOrAreToldToComeBack) {
    const ServerProcess server(with({"--max-connections", "3", "-np", "1"}, long_context));
    std::deque<RawClient> idle;
    for (int i = 0; i < 10; ++i) idle.emplace_back(server.port());
    EXPECT_TRUE(soon([&] { return server.get("/health").status == 200; }));
    std::deque<RawClient> busy;
    for (int i = 0; i < 3; ++i) {
        busy.emplace_back(server.port()).send(endless_stream);
        if (i == 0) busy.front().read_until(first_event);
    }
    HttpResponse refused;
    EXPECT_TRUE(soon([&] {
        refused = server.get("/health");
        return refused.status == 503;
    }));
    EXPECT_EQ(refused.header("Retry-After"), "1");
}

TEST(ServeFaults, AClientThatVanishesFreesItsSlot) {
    const ServerProcess server(with({"-np", "2"}, long_context));
    RawClient streaming = server.connect();
    streaming.send(endless_stream).read_until(first_event);
    RawClient blocking = server.connect();
    blocking.send(ServerProcess::post_text(
        "/completion", R"({"prompt": "The cat", "n_predict": -1, "ignore_eos": true})"));
    ASSERT_TRUE(soon([&] { return busy_slots(server) == 2; }));
    streaming.vanish();
    EXPECT_TRUE(soon([&] { return busy_slots(server) == 1; }));
    blocking.vanish();
    EXPECT_TRUE(soon([&] { return busy_slots(server) == 0; }));
    EXPECT_EQ(server.post("/completion", {{"prompt", "The"}, {"n_predict", 2}}).status, 200);
}

TEST(ServeFaults, AClientThatVanishesWhileItWaitsLeavesTheQueue) {
    const ServerProcess server(with({"-np", "1", "--queue", "1"}, long_context));
    RawClient running = server.connect();
    running.send(endless_stream).read_until(first_event);
    RawClient queued = server.connect();
    queued.send(endless_stream);
    ASSERT_TRUE(soon([&] { return waiting(server, 1); }));
    queued.vanish();
    EXPECT_TRUE(soon([&] { return waiting(server, 0); })) << "although the first one goes on";
    RawClient third = server.connect();
    third.send(stream_text(2));
    ASSERT_TRUE(soon([&] { return waiting(server, 1); }));
    running.vanish();
    EXPECT_TRUE(complete(third.read_all()));
}

TEST(ServeFaults, AReaderThatTakesNothingHoldsNobodyUp) {
    const ServerProcess server(with({"-np", "2", "-c", "4096"}));
    RawClient slow = server.connect();
    slow.send(stream_text(1000, {{"n_probs", 100}}));  // more than fits on the way
    slow.read_until(first_event);
    const std::string text = answer_text(server);
    EXPECT_EQ(answer_text(server), text);
    // The slot does not wait for the reader either.
    ASSERT_TRUE(soon([&] { return busy_slots(server) == 0; }));
    EXPECT_TRUE(complete(slow.read_all()));
}

TEST(ServeFaults, AFullQueueAnswersThatItIsFull) {
    const ServerProcess server(with({"-np", "1", "--queue", "1"}, long_context));
    RawClient running = server.connect();
    running.send(endless_stream).read_until(first_event);
    RawClient queued = server.connect();
    queued.send(stream_text(4));
    ASSERT_TRUE(soon([&] { return waiting(server, 1); }));
    const HttpResponse refused =
        server.post("/v1/completions", {{"prompt", "The cat"}, {"max_tokens", 1}});
    EXPECT_EQ(refused.status, 503);
    EXPECT_NE(refused.header("Retry-After"), "");
    EXPECT_EQ(refused.json()["error"]["type"], "unavailable_error");
    EXPECT_EQ(server.get("/health").status, 200);
    running.vanish();
    EXPECT_TRUE(complete(queued.read_all())) << "who waited is served";
}

TEST(ServeFaults, SigtermUnderLoadLetsAllAnswersEnd) {
    ServerProcess server(with({"-np", "4"}));
    std::deque<RawClient> clients;
    for (int i = 0; i < 6; ++i) clients.emplace_back(server.port()).send(stream_text(300));
    ASSERT_TRUE(soon([&] { return waiting(server, 2); }));
    RawClient idle = server.connect();
    server.send(SIGTERM);
    EXPECT_EQ(idle.read_all(), "");
    EXPECT_TRUE(idle.closed());
    EXPECT_TRUE(soon([&] {
        try {
            server.connect();
            return false;
        } catch (const std::runtime_error&) {
            return true;
        }
    })) << "no new connections";
    for (RawClient& client : clients) {
        const std::string stream = client.read_all();
        EXPECT_TRUE(complete(stream)) << stream.substr(0, 500);
        client.vanish();
    }
    const ToolRun run = server.wait();
    EXPECT_EQ(run.status, 0) << run.err;
}

TEST(ServeFaults, SigintEndsTheServerToo) {
    ServerProcess server(with({}));
    server.send(SIGINT);
    EXPECT_EQ(server.wait().status, 0);
}

TEST(ServeFaults, AnswersThatDoNotEndAreCutAfterTheDrainTimeout) {
    ServerProcess server(with({"--drain-timeout", "0.2", "-np", "2"}, long_context));
    const std::string endless = ServerProcess::post_text(
        "/completion", R"({"prompt": "The cat", "n_predict": -1, "ignore_eos": true})");
    RawClient streaming = server.connect();
    streaming.send(endless_stream).read_until(first_event);
    RawClient running = server.connect();
    running.send(endless);
    ASSERT_TRUE(soon([&] { return busy_slots(server) == 2; }));
    RawClient waiting_stream = server.connect();
    waiting_stream.send(endless_stream);
    RawClient waiting_for_all = server.connect();
    waiting_for_all.send(endless);
    ASSERT_TRUE(soon([&] { return waiting(server, 2); }));
    const ToolRun run = server.stop();
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.err, HasSubstr("did not end in time"));
    for (RawClient* client : {&streaming, &waiting_stream}) {
        const std::string stream = client->read_all();
        EXPECT_THAT(stream, HasSubstr("data: {\"error\":{\"code\":503,"));
        EXPECT_TRUE(complete(stream));
    }
    for (RawClient* client : {&running, &waiting_for_all}) {
        const HttpResponse answer = read_response(client->read_all());
        EXPECT_EQ(answer.status, 503);
        EXPECT_EQ(answer.json()["error"]["type"], "unavailable_error");
    }
}

TEST(ServeFaults, APromptThatCannotFitIsRefusedBeforeItIsTokenized) {
    ServerProcess server(with({"-c", "512"}));
    json messages = json::array();
    for (int i = 0; i < 60'000; ++i) messages.push_back({{"role", "user"}, {"content", "a"}});
    const std::string text = json(messages).dump();
    const HttpResponse chat = server.post("/v1/chat/completions", {{"messages", messages}});
    const HttpResponse completion = server.post("/completion", {{"prompt", text}});
    const HttpResponse embedding = server.post("/v1/embeddings", {{"input", text}});
    for (const HttpResponse& answer : {chat, completion, embedding}) {
        EXPECT_EQ(answer.status, 400);
        EXPECT_EQ(answer.json()["error"]["type"], "exceed_context_size_error");
        EXPECT_EQ(answer.json()["error"]["n_ctx"], 512);
    }
    EXPECT_EQ(server.post("/tokenize", {{"content", text}}).status, 400);
    EXPECT_EQ(server.stop().status, 0);
}

TEST(ServeFaults, ASecondSignalEndsTheServerAtOnce) {
    ServerProcess server(with({}, long_context));
    RawClient client = server.connect();
    client.send(endless_stream).read_until(first_event);
    server.send(SIGTERM);
    ASSERT_TRUE(soon([&] { return server.log().find("stopping") != std::string::npos; }));
    EXPECT_TRUE(soon([&] {  // once it comes late enough to be a second one
        server.send(SIGTERM);
        return server.ended();
    }));
    EXPECT_EQ(server.wait().status, 128 + SIGTERM);
}

TEST(ServeFaults, ASignalThatIsPassedOnTwiceIsOne) {
    ServerProcess server(with({}));
    RawClient client = server.connect();
    client.send(stream_text(300)).read_until(first_event);
    server.send(SIGTERM);
    server.send(SIGINT);
    EXPECT_TRUE(complete(client.read_all()));
    EXPECT_EQ(server.wait().status, 0);
}

TEST(ServeFaults, AClientThatHasEndedItsSendingGetsItsAnswer) {
    const ServerProcess server(with({}));
    for (const bool stream : {false, true}) {
        const json body = {
            {"prompt", "The cat"}, {"n_predict", 200}, {"ignore_eos", true}, {"stream", stream}};
        RawClient client = server.connect();
        client.send(ServerProcess::post_text("/completion", body.dump())).half_close();
        const std::string answer = client.read_all();
        EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200 OK"));
        EXPECT_THAT(answer, HasSubstr("\"tokens_predicted\":200"));
    }
}

TEST(ServeFaults, KeysGuardAllButHealth) {
    const TempFile file(".keys", "# of the team\n\nfile-key\r\n");
    const ServerProcess server(with({"--api-key", "one,two", "--api-key-file", file.path()}));
    const json body = {{"prompt", "The cat"}, {"n_predict", 1}};
    for (const std::string key : {"one", "two", "file-key"}) {
        EXPECT_EQ(server.post("/completion", body, "Authorization: Bearer " + key + "\r\n").status,
                  200);
        EXPECT_EQ(server.get("/v1/models", "X-Api-Key: " + key + "\r\n").status, 200);
    }
    for (const char* path : {"/v1/models", "/slots", "/metrics", "/props", "/nothing"}) {
        EXPECT_EQ(server.get(path).status, 401) << path;
        EXPECT_EQ(server.get(path, "Authorization: Bearer onetwo\r\n").status, 401) << path;
    }
    EXPECT_EQ(server.post("/completion", body).json()["error"]["type"], "authentication_error");
    EXPECT_EQ(server.get("/health").status, 200);
    EXPECT_THAT(server.log(), Not(AnyOf(HasSubstr("file-key"), HasSubstr("onetwo"))));
}

TEST(ServeFaults, WebPagesCannotUseTheServer) {
    const ServerProcess server(with({}));
    const std::string body = R"({"prompt": "The cat", "n_predict": 1})";
    const auto status = [&](const std::string& headers) {
        return server
            .request("POST /completion HTTP/1.1\r\nConnection: close\r\nContent-Length: " +
                     std::to_string(body.size()) + "\r\n" + headers + "\r\n" + body)
            .status;
    };
    const std::string json_type = "Content-Type: application/json\r\n";
    EXPECT_EQ(status("Host: localhost\r\n" + json_type), 200);
    EXPECT_EQ(status("Host: rebound.example\r\n" + json_type), 403);
    EXPECT_EQ(status("Host: localhost\r\nOrigin: http://evil.example\r\n" + json_type), 403);
    EXPECT_EQ(status("Host: localhost\r\nContent-Type: text/plain\r\n"), 415);
    EXPECT_EQ(status("Host: localhost\r\n"), 415);
    EXPECT_EQ(server
                  .request("OPTIONS /completion HTTP/1.1\r\nHost: localhost\r\nOrigin: "
                           "http://evil.example\r\n\r\n")
                  .status,
              403);
    EXPECT_EQ(server.get("/health").header("Access-Control-Allow-Origin"), "");
}

TEST(ServeFaults, APageThatIsAllowedGetsItsHeaders) {
    const ServerProcess server(with({"--cors-origin", "http://chat.example"}));
    const std::string origin = "Origin: http://chat.example\r\n";
    const HttpResponse answer =
        server.post("/completion", {{"prompt", "The cat"}, {"n_predict", 1}}, origin);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.header("Access-Control-Allow-Origin"), "http://chat.example");
    EXPECT_EQ(server.get("/health", "Origin: http://evil.example\r\n").status, 403);
}

TEST(ServeFaults, WhatIsTooLargeIsRefused) {
    const ServerProcess server(with({"--max-body", "1"}));
    const std::string large(2 << 20, ' ');
    EXPECT_EQ(server.request(ServerProcess::post_text("/completion", large)).status, 413);
    EXPECT_EQ(server
                  .request("POST /completion HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                           "application/json\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" +
                           large + "\r\n0\r\n\r\n")
                  .status,
              413);
    EXPECT_EQ(server.get("/" + std::string(10'000, 'x')).status, 414);
    EXPECT_EQ(server.get("/health", "X: " + std::string(40'000, 'x') + "\r\n").status, 431);
    EXPECT_EQ(server.get("/health").status, 200);
}

TEST(ServeFaults, TheLogShowsNoPromptUnlessAsked) {
    const json body = {{"prompt", "A secret\nwish"}, {"n_predict", 1}};
    ServerProcess silent(with({}));
    silent.post("/completion?secret=1", body);
    const std::string log = silent.stop().err;
    EXPECT_THAT(log, AllOf(HasSubstr("POST /completion 200 "), Not(HasSubstr("secret"))));
    ServerProcess chatty(with({"--log-prompts"}));
    chatty.post("/completion", body);
    EXPECT_THAT(chatty.stop().err, HasSubstr("A secret\\\\nwish"));
}

TEST(ServeFaults, APortThatIsTakenIsOneLine) {
    const ServerProcess server(with({}));
    const ToolRun run =
        run_pleat({"serve", demo_model, "-q", "--port", std::to_string(server.port())});
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, AllOf(StartsWith("pleat: cannot listen on 127.0.0.1:"),
                               EndsWith("0 = any that is free\n")));
}

/// How `pleat serve` refuses a command line: one line, before anything is loaded.
std::string refusal(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{"serve", demo_model, "-q", "--port", "0"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    PleatProcess process(all);
    if (!soon([&] { return process.ended(); })) process.send(SIGTERM);  // it serves instead
    const ToolRun run = process.wait();
    EXPECT_EQ(run.status, 1);
    EXPECT_EQ(std::ranges::count(run.err, '\n'), 1) << run.err;
    return run.err;
}

TEST(ServeFlags, ThatCannotBeAreRefusedInOneLine) {
    const TempFile no_keys(".keys", "# none yet\n");
    const TempFile bad_key(".keys", "two words\n");
    EXPECT_THAT(refusal({"--api-key-file", no_keys.path()}), HasSubstr("holds no key"));
    EXPECT_THAT(refusal({"--api-key-file", bad_key.path()}), HasSubstr("printable ASCII"));
    EXPECT_THAT(refusal({"--api-key-file", "/no/such/file"}), HasSubstr("/no/such/file"));
    EXPECT_THAT(refusal({"--api-key", ","}), HasSubstr("--api-key is empty"));
    EXPECT_THAT(refusal({"--host", "no.such.host.invalid"}), HasSubstr("--host"));
    EXPECT_THAT(refusal({"--port", "65536"}), HasSubstr("--port"));
    EXPECT_THAT(refusal({"-np", "0"}), HasSubstr("-np 0"));
    EXPECT_THAT(refusal({"--pooling", "rank"}), HasSubstr("--pooling"));
    EXPECT_THAT(refusal({"--chat-template-kwargs", "[1]"}), HasSubstr("JSON object"));
    EXPECT_THAT(refusal({"--chat-template", "{% for %}"}), HasSubstr("template"));
    for (const char* origin : {"foo", "app.example", "http://", "http://app.example/", "://a"}) {
        EXPECT_THAT(refusal({"--cors-origin", origin}), HasSubstr("no web page has this origin"));
    }
    EXPECT_THAT(refusal({"--reasoning-format", "deepseek-legacy"}), HasSubstr("told once"));
    EXPECT_THAT(refusal({"--mirostat", "3"}), HasSubstr("mirostat"));
    EXPECT_THAT(refusal({"--grammar", "root ::= ("}), HasSubstr("grammar"));
}

TEST(ServeFlags, OfVariantsAreChecked) {
    EXPECT_THAT(refusal({"--variant", "4,8"}), HasSubstr("NAME=SPEC"));
    EXPECT_THAT(refusal({"--variant", "=4,8"}), HasSubstr("letters, digits"));
    EXPECT_THAT(refusal({"--variant", "a b=4,8"}), HasSubstr("letters, digits"));
    EXPECT_THAT(refusal({"--variant", "a=4,8", "--variant", "a="}), HasSubstr("there twice"));
    EXPECT_THAT(refusal({"--variant", "a=4,80"}), HasSubstr("--variant a"));
    EXPECT_THAT(refusal({"--variant", "a=4,8", "--repeat-layers", "4,8"}),
                HasSubstr("--variant goes with no plan flag"));
}

TEST(ServeFlags, OfLlamaServerAreTakenOrRefusedWithAReason) {
    EXPECT_THAT(refusal({"--no-jinja"}), HasSubstr("--no-jinja is not offered"));
    EXPECT_THAT(refusal({"--slot-save-path", "x"}), HasSubstr("not saved"));
    EXPECT_THAT(refusal({"-hf", "a/b"}), HasSubstr("nothing is downloaded"));
    EXPECT_THAT(refusal({"--ssl-key-file", "x"}), HasSubstr("HTTPS"));
    EXPECT_THAT(refusal({"--webui"}), HasSubstr("no web page"));
    EXPECT_THAT(refusal({"--log-file", "x"}), HasSubstr("stderr"));
    EXPECT_THAT(refusal({"--special"}), HasSubstr("control tokens"));
    EXPECT_THAT(refusal({"--reasoning-budget", "0"}), HasSubstr("--reasoning off"));
    EXPECT_THAT(refusal({"--no-such-flag"}), HasSubstr("--no-such-flag"));
    const ServerProcess server(with({"--jinja",
                                     "--embeddings",
                                     "-cb",
                                     "--threads-http",
                                     "4",
                                     "--metrics",
                                     "--slots",
                                     "--no-webui",
                                     "--no-warmup",
                                     "--cache-reuse",
                                     "256",
                                     "--alias",
                                     "gpt-local",
                                     "-v",
                                     "-lv",
                                     "3",
                                     "--log-disable",
                                     "--log-timestamps",
                                     "--keep",
                                     "4",
                                     "--no-kv-offload",
                                     "--fit",
                                     "off",
                                     "--check-tensors",
                                     "--cors-origin",
                                     "*,http://app.example:3000"}));
    for (const char* name : {"log-verbose", "log-verbosity", "log-disable", "log-timestamps",
                             "no-kv-offload", "fit", "check-tensors"}) {
        EXPECT_THAT(server.log(),
                    HasSubstr(std::string("warning: --") + name + " changes nothing"));
    }
    EXPECT_THAT(server.log(), HasSubstr("warning: --cache-reuse changes nothing"));
    EXPECT_EQ(server.get("/v1/models").json()["data"][0]["id"], "gpt-local");
}

TEST(ServeFlags, ThatNeedAWordGetALine) {
    const ServerProcess others(with({"--host", "0.0.0.0", "-c", "100"}));
    EXPECT_THAT(others.log(),
                HasSubstr("warning: other machines may use this server without a key"));
    EXPECT_THAT(others.log(), HasSubstr("warning: a context of 100 tokens (-c) becomes 256: "));
    const ServerProcess guarded(with({"--host", "0.0.0.0", "--api-key", "key", "-c", "256"}));
    EXPECT_THAT(guarded.log(), Not(AnyOf(HasSubstr("without a key"), HasSubstr("becomes"))));
    const ToolRun version = run_pleat({"serve", "--version"});
    EXPECT_EQ(version.status, 0);
    EXPECT_THAT(version.out, StartsWith("pleat "));
}

/// An environment variable while it lives.
class Variable {
  public:
    Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~Variable() { ::unsetenv(name_); }
    Variable(const Variable&) = delete;
    Variable& operator=(const Variable&) = delete;

  private:
    const char* name_;
};

TEST(ServeFlags, CanComeFromLlamaServersEnvironment) {
    const Variable model("LLAMA_ARG_MODEL", demo_model.c_str());
    const Variable slots("LLAMA_ARG_N_PARALLEL", "3");
    const Variable key("LLAMA_API_KEY", "from-the-environment");
    const Variable alias("LLAMA_ARG_ALIAS", "overridden");
    const Variable other("LLAMA_ARG_SPLIT_MODE", "row");
    const ServerProcess server({"-a", "on-the-command-line"});
    const std::string header = "X-Api-Key: from-the-environment\r\n";
    EXPECT_EQ(server.get("/slots").status, 401);
    EXPECT_EQ(server.get("/slots", header).json().size(), 3U);
    EXPECT_EQ(server.get("/v1/models", header).json()["data"][0]["id"], "on-the-command-line");
    EXPECT_THAT(server.log(), HasSubstr("warning: LLAMA_ARG_SPLIT_MODE is set, but nothing here"));
}

}  // namespace
}  // namespace pleat::test
