#include "serve/http_server.h"

#include <gmock/gmock.h>
#include <httplib.h>

#include <atomic>
#include <deque>
#include <mutex>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "serve/http_error.h"
#include "support/raw_client.h"

namespace pleat {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using test::RawClient;
using testing::AllOf;
using testing::Each;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

/// A server on a free port of this machine, whose handlers hold no model: /echo gives back what it
/// got, /wait answers when it is let go, /stream writes until then.
class TestServer {
  public:
    explicit TestServer(HttpSettings settings = {}) : server_(adjusted(std::move(settings))) {
        server_.get("/health", [](const httplib::Request&, httplib::Response& response) {
            response.set_content("{}", "application/json");
        });
        server_.post("/echo", [](const httplib::Request& request, httplib::Response& response) {
            response.set_content(request.body, "application/json");
        });
        server_.get("/models/:name", [](const httplib::Request& request, httplib::Response& r) {
            r.set_content(request.path_params.at("name"), "text/plain");
        });
        server_.get("/wait", [this](const httplib::Request& request, httplib::Response& response) {
            ++waiting;
            while (!let_go && !request.is_connection_closed()) std::this_thread::sleep_for(1ms);
            if (request.is_connection_closed()) ++vanished;
            --waiting;
            response.set_content("done", "text/plain");
        });
        server_.get("/stream", [this](const httplib::Request&, httplib::Response& response) {
            response.set_chunked_content_provider(
                "text/event-stream",
                [this](size_t, httplib::DataSink& sink) {
                    if (let_go) {
                        sink.write("data: [DONE]\n\n", 14);
                        sink.done();
                        return true;
                    }
                    std::this_thread::sleep_for(1ms);
                    return sink.write("data: x\n\n", 9);
                },
                [this](bool complete) { (complete ? completed : vanished)++; });
        });
        server_.get("/throw", [](const httplib::Request&, httplib::Response&) {
            throw std::runtime_error("secret detail");
        });
        server_.get("/throw-int", [](const httplib::Request&, httplib::Response&) { throw 1; });
        server_.get("/throw-late", [](const httplib::Request&, httplib::Response& response) {
            response.set_chunked_content_provider("text/plain",
                                                  [](size_t, httplib::DataSink&) -> bool {
                                                      throw std::runtime_error("in a stream");
                                                  });
        });
        server_.get("/gone", [](const httplib::Request& request, httplib::Response&) {
            while (!request.is_connection_closed()) std::this_thread::sleep_for(1ms);
            throw client_gone();
        });
        server_.get("/refuse", [](const httplib::Request&, httplib::Response&) {
            throw RequestError(400, "n is -1", "n");
        });
        port = server_.bind();
        server_.ready();
        thread_ = std::thread([this] { server_.listen(); });
    }
    ~TestServer() { stop(); }

    void stop() {
        server_.abort();
        if (thread_.joinable()) thread_.join();
    }
    HttpServer& server() { return server_; }
    void join() { thread_.join(); }

    RawClient client() const { return RawClient(port); }
    /// The answer to one request on a connection of its own.
    std::string get(const std::string& path) const {
        return client().send("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n").read_answer();
    }

    std::vector<HttpLogEntry> log() const {
        const std::lock_guard lock(mutex_);
        return log_;
    }
    std::vector<std::string> errors() const {
        const std::lock_guard lock(mutex_);
        return errors_;
    }

    int port = 0;
    std::atomic<bool> let_go = false;
    std::atomic<int> waiting = 0;
    std::atomic<int> vanished = 0;
    std::atomic<int> completed = 0;

  private:
    HttpSettings adjusted(HttpSettings settings) {
        settings.port = 0;
        settings.log = [this](const HttpLogEntry& entry) {
            const std::lock_guard lock(mutex_);
            log_.push_back(entry);
        };
        settings.log_error = [this](const std::string& line) {
            const std::lock_guard lock(mutex_);
            errors_.push_back(line);
        };
        return settings;
    }

    mutable std::mutex mutex_;
    std::vector<HttpLogEntry> log_;
    std::vector<std::string> errors_;
    HttpServer server_;
    std::thread thread_;
};

/// Waits for what is bound to happen; a generous bound, so that a fault ends the test.
template <typename Condition>
bool soon(Condition condition) {
    const auto deadline = std::chrono::steady_clock::now() + 60s;
    while (!condition()) {
        if (std::chrono::steady_clock::now() > deadline) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

std::string request(const std::string& line, const std::string& headers = {}) {
    return line + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

std::string post(const std::string& path, const std::string& body,
                 const std::string& headers = {}) {
    return request("POST " + path, "Content-Type: application/json\r\nContent-Length: " +
                                       std::to_string(body.size()) + "\r\n" + headers) +
           body;
}

json error_of(const std::string& answer) {
    return json::parse(answer.substr(answer.find("\r\n\r\n") + 4)).at("error");
}

constexpr const char* ok = "HTTP/1.1 200 OK\r\n";

TEST(HttpServer, AnswersRequestsOneAfterTheOtherOnAConnection) {
    const TestServer server;
    RawClient client = server.client();
    for (const std::string body : {"{}", "[1]", ""}) {
        const std::string answer = client.send(post("/echo", body)).read_answer();
        EXPECT_THAT(answer, AllOf(StartsWith(ok), EndsWith("\r\n\r\n" + body)));
    }
    EXPECT_THAT(client.send(request("GET /models/a.b")).read_answer(), EndsWith("a.b"));
    EXPECT_THAT(client.send(request("HEAD /health")).read_until("\r\n\r\n"), StartsWith(ok));
}

TEST(HttpServer, AnswersPipelinedRequestsInTheirOrder) {
    const TestServer server;
    RawClient client = server.client();
    client.send(post("/echo", "[1]") + request("GET /health") + "\r\n" + post("/echo", "[2]"));
    EXPECT_THAT(client.read_answer(), EndsWith("[1]"));
    EXPECT_THAT(client.read_answer(), EndsWith("{}"));
    EXPECT_THAT(client.read_answer(), EndsWith("[2]"));
}

TEST(HttpServer, TakesChunkedBodies) {
    const TestServer server;
    RawClient client = server.client();
    const std::string head =
        request("POST /echo", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n");
    client.send(head + "2\r\n[1\r\n1\r\n]\r\n0\r\n\r\n");
    EXPECT_THAT(client.read_answer(), AllOf(StartsWith(ok), EndsWith("[1]")));
    client.send(head + "x\r\n");
    EXPECT_EQ(error_of(client.read_all())["code"], 400);
    EXPECT_TRUE(client.closed()) << "the rest of it is not waited for";
}

TEST(HttpServer, TellsAClientThatAsksWhetherToSendItsBody) {
    const TestServer server({.max_body_bytes = 100});
    RawClient client = server.client();
    const std::string head = "Content-Type: application/json\r\nExpect: 100-continue\r\n";
    client.send(request("POST /echo", head + "Content-Length: 2\r\n"));
    EXPECT_EQ(client.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    EXPECT_THAT(client.send("{}").read_answer(), AllOf(StartsWith(ok), EndsWith("{}")));
    client.send(request("POST /echo", head + "Content-Length: 101\r\n"));
    EXPECT_EQ(error_of(client.read_answer())["code"], 413);
}

TEST(HttpServer, ClosesWhenTheClientAsksForIt) {
    const TestServer server;
    RawClient client = server.client();
    EXPECT_THAT(client.send(request("GET /health", "Connection: close\r\n")).read_all(),
                AllOf(StartsWith(ok), EndsWith("{}")));
    EXPECT_TRUE(client.closed());
    EXPECT_THAT(server.client().send("GET /health HTTP/1.0\r\nHost: localhost\r\n\r\n").read_all(),
                EndsWith("{}"));
}

TEST(HttpServer, ReportsWhatIsWrongWithARequestAsJson) {
    const TestServer server(
        {.max_body_bytes = 100, .max_header_bytes = 1000, .max_uri_bytes = 200});
    const std::pair<std::string, int> cases[] = {
        {"nonsense\r\n\r\n", 400},
        {"\x16\x03\x01", 400},
        {"GET /health HTTP/1.1\nHost: localhost\n\n", 400},
        {request("GET /nothing"), 404},
        {request("GET /echo"), 405},
        {request("DELETE /health"), 405},
        {request("POST /echo", "Content-Type: application/json\r\n"), 411},
        {post("/echo", std::string(101, 'x')), 413},
        {request("POST /echo", "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n") +
             "c8\r\n" + std::string(200, 'x') + "\r\n0\r\n\r\n",
         413},
        {request("GET /" + std::string(300, 'x')), 414},
        {request("POST /echo", "Content-Type: text/plain\r\nContent-Length: 0\r\n"), 415},
        {request("GET /health", "a: " + std::string(2000, 'x') + "\r\n"), 431},
        {"GET /health HTTP/1.1\r\na: " + std::string(2000, 'x'), 431},
        {"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403},
        {request("GET /health", "Origin: http://evil.example\r\n"), 403},
        {request("BREW /health"), 501},
        {"GET /health HTTP/3.0\r\nHost: localhost\r\n\r\n", 505},
    };
    for (const auto& [text, status] : cases) {
        RawClient client = server.client();
        const std::string answer = client.send(text).read_all();
        SCOPED_TRACE(text.substr(0, 60));
        EXPECT_THAT(answer, HasSubstr("Content-Type: application/json"));
        ASSERT_THAT(answer, HasSubstr("\r\n\r\n"));
        EXPECT_EQ(error_of(answer)["code"], status);
        EXPECT_FALSE(client.was_reset()) << "the answer could be lost";
    }
    EXPECT_THAT(server.get("/echo"), HasSubstr("\r\nAllow: POST\r\n"));
    EXPECT_THAT(server.get("/health"), StartsWith(ok));
}

TEST(HttpServer, IsHeardByAClientThatStillSends) {
    const TestServer server({.max_body_bytes = 100});
    RawClient client = server.client();
    const std::string answer = client.send(post("/echo", std::string(64 << 10, 'x'))).read_all();
    EXPECT_FALSE(client.was_reset());
    EXPECT_EQ(error_of(answer)["code"], 413);
}

TEST(HttpServer, TurnsWhatHandlersThrowIntoAnswers) {
    const TestServer server;
    const json refused = error_of(server.get("/refuse"));
    EXPECT_EQ(refused["code"], 400);
    EXPECT_EQ(refused["param"], "n");
    for (const std::string path : {"/throw", "/throw-int"}) {
        const std::string answer = server.get(path);
        EXPECT_EQ(error_of(answer)["code"], 500);
        EXPECT_EQ(error_of(answer)["type"], "server_error");
        EXPECT_THAT(answer, Not(HasSubstr("secret")));
    }
    RawClient late = server.client();
    EXPECT_THAT(late.send(request("GET /throw-late")).read_all(), Not(EndsWith("0\r\n\r\n")));
    EXPECT_THAT(server.get("/health"), StartsWith(ok));
    ASSERT_TRUE(soon([&] { return server.errors().size() == 3; }));
    EXPECT_EQ(server.errors()[0], "GET /throw: secret detail");
    EXPECT_THAT(server.errors()[2], HasSubstr("in a stream"));
}

TEST(HttpServer, LogsRequestsWithoutQueryAndBody) {
    const TestServer server;
    server.client().send(post("/echo?secret", "[\"secret\"]")).read_answer();
    ASSERT_TRUE(soon([&] { return server.log().size() == 1; })) << "after the answer was written";
    server.get("/nothing?secret");
    ASSERT_TRUE(soon([&] { return server.log().size() == 2; }));
    const HttpLogEntry entry = server.log()[0];
    EXPECT_EQ(entry.method, "POST");
    EXPECT_EQ(entry.path, "/echo");
    EXPECT_EQ(entry.status, 200);
    EXPECT_EQ(entry.client, "127.0.0.1");
    EXPECT_EQ(server.log()[1].status, 404);
}

TEST(HttpServer, ServesOthersBesideHundredsOfIdleConnections) {
    const TestServer server({.max_connections = 300});
    std::deque<RawClient> idle;
    for (int i = 0; i < 200; ++i) idle.emplace_back(server.port);
    for (int i = 0; i < 20; ++i) EXPECT_THAT(server.get("/health"), StartsWith(ok));
    EXPECT_THAT(idle.front().send(request("GET /health")).read_answer(), StartsWith(ok));
}

TEST(HttpServer, CutsOffHeadersThatDoNotComeInTime) {
    const TestServer server({.header_time = 50ms});
    RawClient client = server.client();
    client.send("GET /health HTTP/1.1\r\nHost:");
    EXPECT_EQ(error_of(client.read_all())["code"], 408);
    RawClient dribbling = server.client();
    std::thread writer([&] {
        for (int i = 0; i < 2000 && dribbling.alive(); ++i) {
            dribbling.send("X");
            std::this_thread::sleep_for(5ms);
        }
    });
    EXPECT_EQ(error_of(dribbling.read_all())["code"], 408) << "bytes do not buy time";
    writer.join();
}

TEST(HttpServer, CutsOffBodiesThatDoNotComeInTime) {
    const TestServer server({.body_time = 50ms});
    RawClient client = server.client();
    client.send(request("POST /echo", "Content-Type: application/json\r\nContent-Length: 5\r\n"));
    EXPECT_EQ(error_of(client.send("[1").read_all())["code"], 408);
}

TEST(HttpServer, ClosesConnectionsThatStayIdle) {
    const TestServer server({.idle_time = 50ms});
    RawClient fresh = server.client();
    EXPECT_EQ(fresh.read_all(), "");
    EXPECT_TRUE(fresh.closed());
    RawClient kept = server.client();
    EXPECT_THAT(kept.send(request("GET /health")).read_answer(), StartsWith(ok));
    EXPECT_EQ(kept.read_all(), "");
    EXPECT_TRUE(kept.closed());
}

TEST(HttpServer, GivesUpOnAReaderThatTakesNothing) {
    TestServer server({.write_time = 100ms});
    RawClient client = server.client();
    client.shrink_receive_buffer();
    client.send(post("/echo", std::string(10 << 20, 'x')));
    EXPECT_TRUE(soon([&] { return server.log().size() == 1; }));
    EXPECT_THAT(server.get("/health"), StartsWith(ok));
}

TEST(HttpServer, DropsTheLongestIdleConnectionToMakeRoom) {
    const TestServer server({.max_connections = 3});
    RawClient first = server.client();
    RawClient second = server.client();
    RawClient third = server.client();
    for (RawClient* client : {&first, &second, &third, &first}) {
        EXPECT_THAT(client->send(request("GET /health")).read_answer(), StartsWith(ok));
    }
    EXPECT_THAT(server.get("/health"), StartsWith(ok));
    EXPECT_EQ(second.read_all(), "");
    EXPECT_TRUE(second.closed());
    EXPECT_THAT(first.send(request("GET /health")).read_answer(), StartsWith(ok));
}

TEST(HttpServer, DropsTheLongestWaitingConnectionHoweverFresh) {
    const TestServer server({.max_connections = 3, .header_time = 1h, .idle_time = 1h});
    std::deque<RawClient> fresh;
    for (int i = 0; i < 3; ++i) fresh.emplace_back(server.port);
    EXPECT_THAT(server.get("/health"), StartsWith(ok));
    EXPECT_EQ(fresh.front().read_all(), "");
    EXPECT_TRUE(fresh.front().closed());
    EXPECT_THAT(fresh.back().send(request("GET /health")).read_answer(), StartsWith(ok));
}

TEST(HttpServer, TellsEveryClientThatIsTooManyWithoutAReset) {
    TestServer server({.max_connections = 1});
    RawClient served = server.client();
    served.send(request("GET /wait"));
    ASSERT_TRUE(soon([&] { return server.waiting == 1; }));
    std::deque<RawClient> others;  // more than get a thread to hear them out
    for (int i = 0; i < 100; ++i) {
        others.emplace_back(server.port);
        others.back().send(post("/echo", std::string(1000, 'x')));
    }
    for (RawClient& client : others) {
        const std::string answer = client.read_all();
        EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
        EXPECT_FALSE(client.was_reset());
    }
    server.let_go = true;
    EXPECT_THAT(served.read_answer(), EndsWith("done"));
}

TEST(HttpServer, DropsClientsThatNeverEndTheirHeadersToMakeRoom) {
    const TestServer server({.max_connections = 4, .header_time = 60s});
    std::deque<RawClient> slow;
    for (int i = 0; i < 4; ++i) slow.emplace_back(server.port).send("GET /health HTT");
    EXPECT_TRUE(soon([&] { return server.get("/health").starts_with(ok); }));
}

TEST(HttpServer, TellsClientsThatAreTooManyToComeBack) {
    TestServer server({.max_connections = 2});
    RawClient first = server.client();
    RawClient second = server.client();
    first.send(request("GET /wait"));
    second.send(request("GET /wait"));
    ASSERT_TRUE(soon([&] { return server.waiting == 2; }));
    const std::string answer = server.get("/health");
    EXPECT_THAT(answer, HasSubstr("\r\nRetry-After: 1\r\n"));
    EXPECT_EQ(error_of(answer)["code"], 503);
    server.let_go = true;
    EXPECT_THAT(first.read_answer(), EndsWith("done"));
    EXPECT_THAT(server.get("/health"), StartsWith(ok));
}

TEST(HttpServer, LetsHandlersSeeThatTheirClientHasGone) {
    TestServer server;
    RawClient waiting = server.client();
    RawClient streaming = server.client();
    waiting.send(request("GET /wait"));
    streaming.send(request("GET /stream")).read_until("data: x");
    ASSERT_TRUE(soon([&] { return server.waiting == 1; }));
    waiting.vanish();
    streaming.vanish();
    EXPECT_TRUE(soon([&] { return server.vanished == 2 && server.server().n_connections() == 0; }));
}

TEST(HttpServer, AnswersClientsThatHaveEndedTheirSending) {
    TestServer server;
    RawClient waiting = server.client();
    RawClient streaming = server.client();
    RawClient quick = server.client();
    waiting.send(request("GET /wait")).half_close();
    streaming.send(request("GET /stream")).half_close();
    quick.send(post("/echo", "[1]")).half_close();
    EXPECT_THAT(quick.read_all(), AllOf(StartsWith(ok), EndsWith("[1]")));
    // Whether they have closed, only something that is sent to them shows.
    EXPECT_EQ(waiting.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    const std::string beginning = streaming.read_until("data: x");
    server.let_go = true;
    EXPECT_THAT(waiting.read_all(), AllOf(StartsWith(ok), EndsWith("done")));
    EXPECT_THAT(beginning + streaming.read_all(),
                AllOf(HasSubstr("\r\n3\r\n:\n\n\r\n"), EndsWith("data: [DONE]\n\n\r\n0\r\n\r\n")));
    EXPECT_EQ(server.vanished, 0);
}

TEST(HttpServer, SendsNothingToAClientThatIsTakenForGone) {
    const TestServer server;
    RawClient client = server.client();
    // A client of HTTP/1.0 knows no 100 Continue.
    client.send("GET /gone HTTP/1.0\r\nHost: localhost\r\n\r\n").half_close();
    EXPECT_EQ(client.read_all(), "");
    ASSERT_TRUE(soon([&] { return server.log().size() == 1; }));
    EXPECT_EQ(server.log()[0].status, client_closed_request);
}

TEST(HttpServer, StopsWhenTheLastAnswerIsWritten) {
    TestServer server;
    RawClient idle = server.client();
    RawClient kept = server.client();
    EXPECT_THAT(kept.send(request("GET /health")).read_answer(), StartsWith(ok));
    RawClient waiting = server.client();
    RawClient streaming = server.client();
    waiting.send(request("GET /wait"));
    streaming.send(request("GET /stream")).read_until("data: x");
    ASSERT_TRUE(soon([&] { return server.waiting == 1; }));
    server.server().stop();
    EXPECT_EQ(idle.read_all(), "") << "nothing is under way there";
    EXPECT_EQ(kept.read_all(), "");
    EXPECT_TRUE(idle.closed() && kept.closed());
    EXPECT_THROW(
        while (soon([] { return true; })) { server.client(); }, std::runtime_error);
    server.let_go = true;
    EXPECT_THAT(waiting.read_all(), EndsWith("done"));
    EXPECT_THAT(streaming.read_all(), EndsWith("data: [DONE]\n\n\r\n0\r\n\r\n"));
    server.join();
    EXPECT_EQ(server.completed, 1);
    EXPECT_EQ(server.vanished, 0);
}

TEST(HttpServer, DoesNotWaitForRequestsThatDoNotEnd) {
    TestServer server({.header_time = 1h, .body_time = 1h});
    RawClient head = server.client();
    head.send("GET /health HTT");
    RawClient body = server.client();
    body.send(request("POST /echo", "Content-Type: application/json\r\nContent-Length: 5\r\n"));
    ASSERT_TRUE(soon([&] { return server.server().n_connections() == 2; }));
    server.server().stop();
    server.join();
    EXPECT_EQ(head.read_all(), "");
}

TEST(HttpServer, AbortsWhatIsUnderWay) {
    TestServer server;
    RawClient streaming = server.client();
    streaming.send(request("GET /stream")).read_until("data: x");
    server.stop();
    EXPECT_THAT(streaming.read_all(), Not(HasSubstr("[DONE]")));
    EXPECT_EQ(server.vanished, 1);
}

TEST(HttpServer, AnswersBeforeItIsReady) {
    HttpServer server({.port = 0});
    const int port = server.bind();
    std::thread thread([&] { server.listen(); });
    const std::string answer = RawClient(port).send(request("GET /health")).read_answer();
    EXPECT_EQ(error_of(answer)["message"], "Loading model");
    server.get("/health", [](const httplib::Request&, httplib::Response& response) {
        response.set_content("{}", "application/json");
    });
    server.ready();
    EXPECT_THAT(RawClient(port).send(request("GET /health")).read_answer(), StartsWith(ok));
    server.stop();
    thread.join();
}

TEST(HttpServer, SaysThatItsPortIsTaken) {
    const TestServer server;
    HttpServer second({.port = server.port});
    try {
        second.bind();
        FAIL() << "the port is taken";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), AllOf(HasSubstr("cannot listen on 127.0.0.1:"),
                                        HasSubstr("another program has that port")));
    }
    HttpServer nowhere({.host = "no.such.host.invalid"});
    EXPECT_THROW(nowhere.bind(), Error);
}

TEST(HttpServer, ServesIpv6) {
    HttpServer server({.host = "::1", .port = 0});
    try {
        const int port = server.bind();
        EXPECT_EQ(server.url(), "http://[::1]:" + std::to_string(port));
    } catch (const Error& error) {
        GTEST_SKIP() << "this machine has no IPv6: " << error.what();
    }
}

TEST(HttpServer, AddsCorsHeadersToEveryAnswer) {
    const TestServer server({.cors_origins = {"http://a.example"}});
    const std::string origin = "Origin: http://a.example\r\n";
    const std::string allowed = "Access-Control-Allow-Origin: http://a.example\r\n";
    for (const std::string path : {"/health", "/nothing", "/throw"}) {
        EXPECT_THAT(server.client().send(request("GET " + path, origin)).read_answer(),
                    HasSubstr(allowed));
    }
    const std::string preflight =
        server.client().send(request("OPTIONS /echo", origin)).read_until("\r\n\r\n");
    EXPECT_THAT(preflight, AllOf(StartsWith("HTTP/1.1 204 No Content\r\n"), HasSubstr(allowed)));
}

TEST(HttpServer, TakesManyClientsAtOnce) {
    const TestServer server;
    std::atomic<int> answered = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t) {
        threads.emplace_back([&] {
            for (int i = 0; i < 20; ++i) {
                RawClient client = server.client();
                const std::string body = "[" + std::to_string(i) + "]";
                const std::string answer = client.send(post("/echo", body)).read_answer();
                if (answer.ends_with(body)) ++answered;
                if (i % 2 == 0) client.send("GET /health HT");  // and away
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(answered, 320);
}

}  // namespace
}  // namespace pleat
