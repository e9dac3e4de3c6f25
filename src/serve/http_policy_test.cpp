#include "serve/http_policy.h"

#include <gmock/gmock.h>

namespace pleat {
namespace {

using nlohmann::json;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

using Headers = HttpHeaders;

HttpHead request(const std::string& method, const std::string& path, const Headers& headers = {}) {
    HttpHead head{.method = method, .target = path, .headers = headers};
    if (!head.has("host")) head.headers.emplace_back("host", "localhost:8080");
    if (method == "POST") {
        head.content_length = 2;
        if (!head.has("content-type"))
            head.headers.emplace_back("content-type", "application/json");
    }
    return head;
}

struct Server {
    HttpSettings settings;
    HttpPolicy policy;

    explicit Server(HttpSettings s = {}) : settings(std::move(s)), policy(settings) {
        policy.routes().add("GET", "/health");
        policy.routes().add("POST", "/v1/chat");
        policy.routes().add("GET", "/v1/models/:name");
    }

    /// 0: the request may go on.
    int status(const HttpHead& head) const {
        const auto answer = policy.refuse(head, true);
        return answer ? answer->status : 0;
    }
};

TEST(HttpPolicy, LetsKnownPathsAndMethodsPass) {
    const Server server;
    EXPECT_EQ(server.status(request("GET", "/health")), 0);
    EXPECT_EQ(server.status(request("GET", "/health?x=1")), 0);
    EXPECT_EQ(server.status(request("HEAD", "/health")), 0);
    EXPECT_EQ(server.status(request("POST", "/v1/chat")), 0);
    EXPECT_EQ(server.status(request("GET", "/v1/models/a.b-c")), 0);
}

TEST(HttpPolicy, MatchesPathsAsTheyWereSent) {
    const Server server;
    for (const char* path : {"/", "/healt", "/health/", "//health", "/%68ealth", "/x/../health",
                             "/health%00", "/v1/models/", "/v1/models/a/b", "/v1/chat;x"}) {
        EXPECT_EQ(server.status(request("GET", path)), 404) << path;
    }
}

TEST(HttpPolicy, SaysWhichMethodsAPathTakes) {
    const Server server;
    const auto answer = server.policy.refuse(request("POST", "/health"), true);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 405);
    EXPECT_THAT(answer->headers, Contains(Pair("Allow", "GET, HEAD")));
    EXPECT_EQ(server.status(request("GET", "/v1/chat")), 405);
    EXPECT_EQ(server.status(request("OPTIONS", "/v1/chat")), 405) << "no CORS: no preflight";
}

TEST(HttpPolicy, OnLoopbackServesOnlyThisMachinesNames) {
    Server server({.host = "my-host", .allowed_hosts = {"box.lan"}});
    for (const char* host : {"localhost", "LOCALHOST:1", "127.0.0.1", "127.0.0.1:8080", "[::1]",
                             "[::1]:8080", "my-host:8080", "box.lan"}) {
        EXPECT_EQ(server.status(request("GET", "/health", {{"host", host}})), 0) << host;
    }
    for (const char* host :
         {"", "evil.example", "evil.example:8080", "localhost.evil.example",
          "127.0.0.1.evil.example", "localhost:8080@evil.example", "[::2]", "192.168.0.1"}) {
        EXPECT_EQ(server.status(request("GET", "/health", {{"host", host}})), 403) << host;
    }
    server.policy.set_loopback(false);
    EXPECT_EQ(server.status(request("GET", "/health", {{"host", "evil.example"}})), 0);
}

TEST(HttpPolicy, OnLoopbackRefusesWebPages) {
    Server server;
    for (const char* origin : {"http://evil.example", "null", "", "http://localhost:3000",
                               "https://localhost:8080", "http://localhost:8080.evil.example"}) {
        EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"origin", origin}})), 403) << origin;
    }
    EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"origin", "http://localhost:8080"}})), 0);
    server.policy.set_loopback(false);
    EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"origin", "http://evil.example"}})), 0);
}

TEST(HttpPolicy, OnLoopbackTakesNoBodyThatAFormCanSend) {
    Server server;
    for (const char* type : {"", "text/plain", "application/x-www-form-urlencoded",
                             "multipart/form-data; boundary=x", "text/plain; application/json"}) {
        EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"content-type", type}})), 415)
            << type;
    }
    for (const char* type : {"application/json", "Application/JSON ; charset=utf-8"}) {
        EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"content-type", type}})), 0) << type;
    }
    server.policy.set_loopback(false);
    EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"content-type", "text/plain"}})), 0);
}

TEST(HttpPolicy, AsksForOneOfItsKeysExceptOnPublicPaths) {
    const Server server({.api_keys = {"first", "second"}});
    const auto with = [&](const char* name, const char* value) {
        return server.status(request("POST", "/v1/chat", {{name, value}}));
    };
    EXPECT_EQ(with("authorization", "Bearer first"), 0);
    EXPECT_EQ(with("authorization", "bearer second"), 0);
    EXPECT_EQ(with("x-api-key", "second"), 0);
    for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer firs", "Bearer first2",
                              "Bearer FIRST", "Bearer  first", "Basic first", "first"}) {
        EXPECT_EQ(with("authorization", wrong), 401) << wrong;
    }
    EXPECT_EQ(with("x-api-key", ""), 401);
    EXPECT_EQ(server.status(request("GET", "/nothing")), 401) << "nor which paths there are";
    EXPECT_EQ(server.status(request("GET", "/health")), 0);
    EXPECT_EQ(server.status(request("GET", "/%68ealth")), 401);
}

TEST(HttpPolicy, RefusalsAreOpenAisErrors) {
    const Server server({.api_keys = {"key"}});
    const auto answer = server.policy.refuse(request("POST", "/v1/chat"), true);
    ASSERT_TRUE(answer);
    EXPECT_EQ(json::parse(answer->body)["error"]["type"], "authentication_error");
    EXPECT_EQ(json::parse(answer->body)["error"]["code"], 401);
    EXPECT_THAT(answer->headers, Contains(Pair("WWW-Authenticate", "Bearer")));
    EXPECT_THAT(answer->body, Not(HasSubstr("key\"}")));
}

TEST(HttpPolicy, AnswersThatItLoadsUntilItIsReady) {
    const Server server;
    const auto answer = server.policy.refuse(request("GET", "/health"), false);
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 503);
    EXPECT_EQ(json::parse(answer->body)["error"]["message"], "Loading model");
    EXPECT_THAT(answer->headers, Contains(Pair("Retry-After", "1")));
}

TEST(HttpPolicy, RefusesBodiesByTheirHead) {
    const Server server({.max_body_bytes = 100});
    HttpHead head = request("POST", "/v1/chat");
    head.content_length = 100;
    EXPECT_EQ(server.status(head), 0);
    head.content_length = 101;
    EXPECT_EQ(server.status(head), 413);
    head.content_length = {};
    EXPECT_EQ(server.status(head), 411);
    head.chunked = true;
    EXPECT_EQ(server.status(head), 0);
    head.headers.emplace_back("content-encoding", "gzip");
    EXPECT_EQ(server.status(head), 415);
    EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"expect", "200-ok"}})), 417);
}

TEST(HttpPolicy, WithoutCorsSaysNothingAboutOrigins) {
    const Server server;
    EXPECT_THAT(server.policy.cors_headers(request("GET", "/health", {{"origin", "http://a"}})),
                IsEmpty());
}

TEST(HttpPolicy, WithCorsLetsThoseOriginsIn) {
    const Server server({.cors_origins = {"http://a.example", "localhost"}});
    for (const char* origin : {"http://a.example", "http://localhost:3000", "https://127.0.0.1"}) {
        const HttpHead head = request("POST", "/v1/chat", {{"origin", origin}});
        EXPECT_EQ(server.status(head), 0) << origin;
        EXPECT_THAT(server.policy.cors_headers(head),
                    Contains(Pair("Access-Control-Allow-Origin", origin)));
    }
    const HttpHead foreign = request("POST", "/v1/chat", {{"origin", "http://b.example"}});
    EXPECT_EQ(server.status(foreign), 403);
    EXPECT_THAT(server.policy.cors_headers(foreign), ElementsAre(Pair("Vary", "Origin")));
    EXPECT_THAT(server.policy.refuse(foreign, true)->body,
                testing::HasSubstr("may use this server (--cors-origin): http://a.example, "));
}

TEST(HttpPolicy, AnswersAPreflightWithoutAKey) {
    const Server server({.api_keys = {"key"}, .cors_origins = {"*"}});
    const HttpHead head =
        request("OPTIONS", "/v1/chat",
                {{"origin", "http://a"}, {"access-control-request-headers", "x-stainless-os"}});
    EXPECT_EQ(server.status(head), 204);
    EXPECT_THAT(server.policy.cors_headers(head),
                Contains(Pair("Access-Control-Allow-Headers", "x-stainless-os")));
    EXPECT_EQ(server.status(request("POST", "/v1/chat", {{"origin", "http://a"}})), 401);
}

}  // namespace
}  // namespace pleat
