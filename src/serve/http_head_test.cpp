#include "serve/http_head.h"

#include <gmock/gmock.h>

#include <random>
#include <string>

#include "serve/http_error.h"

namespace pleat {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

std::string get(const std::string& headers = {}) {
    return "GET /health?a=b HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

/// The status that a head is refused with; 0 when it is taken.
int status_of(const std::string& text, const HttpHeadLimits& limits = {}) {
    try {
        parse_http_head(text, limits);
        return 0;
    } catch (const RequestError& error) {
        EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
        return error.status();
    }
}

TEST(HttpHead, IsReadIntoItsParts) {
    const HttpHead head = parse_http_head(get("X-Thing:  a b \t\r\nCONTENT-length: 12\r\n"));
    EXPECT_EQ(head.method, "GET");
    EXPECT_EQ(head.target, "/health?a=b");
    EXPECT_EQ(head.path(), "/health");
    EXPECT_EQ(head.header("x-thing"), "a b");
    EXPECT_EQ(head.content_length, 12U);
    EXPECT_FALSE(head.chunked);
    EXPECT_FALSE(head.close);
    EXPECT_EQ(head.header("missing"), "");
}

TEST(HttpHead, ClosesWhenTheClientSaysSoOrIsOld) {
    EXPECT_TRUE(parse_http_head(get("Connection: Close\r\n")).close);
    EXPECT_TRUE(parse_http_head("GET / HTTP/1.0\r\n\r\n").close);
    EXPECT_FALSE(parse_http_head("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").close);
}

TEST(HttpHead, WithABadFirstLineIsRefused) {
    for (const std::string line :
         {"", "GET", "GET /", "GET HTTP/1.1", "GET  / HTTP/1.1", "GET / x HTTP/1.1",
          "GET x HTTP/1.1", "GET http://localhost/ HTTP/1.1", "G(T / HTTP/1.1",
          "GET /\x01 HTTP/1.1", "GET /\xc3\xa4 HTTP/1.1", "GET / http/1.1", "GET / HTTP/1.1 ",
          " GET / HTTP/1.1"}) {
        EXPECT_EQ(status_of(line + "\r\nHost: localhost\r\n\r\n"), 400) << line;
    }
    EXPECT_EQ(status_of("GET / HTTP/2.0\r\nHost: a\r\n\r\n"), 505);
    EXPECT_EQ(status_of("BREW / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
    EXPECT_EQ(status_of("get / HTTP/1.1\r\nHost: a\r\n\r\n"), 501);
}

TEST(HttpHead, WithBadHeadersIsRefused) {
    for (const std::string line :
         {"no colon", ": empty name", "space : x", " folded: x", "a: b\rc", "a: b\nc", "a: \x01",
          "a: b\x7f", "h\xc3\xa4: x", "Host: twice"}) {
        EXPECT_EQ(status_of(get(line + "\r\n")), 400) << line;
    }
    EXPECT_EQ(status_of(get(std::string("a: b\0c\r\n", 8))), 400);
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\n\r\n"), 400) << "no Host";
    EXPECT_EQ(status_of(get("a: \xc3\xa4\r\n")), 0) << "values may hold more than ASCII";
    EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n"), 400) << "no end";
}

TEST(HttpHead, ThatLeavesTheBodysLengthInDoubtIsRefused) {
    for (const std::string lines :
         {"Content-Length: -1", "Content-Length: +1", "Content-Length: 1,1", "Content-Length: 0x1",
          "Content-Length:", "Content-Length: 99999999999999999999",
          "Content-Length: 1\r\nContent-Length: 1", "Content-Length: 1\r\nContent-Length: 2",
          "Content-Length: 0\r\nTransfer-Encoding: chunked",
          "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"}) {
        EXPECT_EQ(status_of(get(lines + "\r\n")), 400) << lines;
    }
    EXPECT_EQ(status_of(get("Transfer-Encoding: gzip, chunked\r\n")), 501);
    EXPECT_EQ(status_of(get("Transfer-Encoding: identity\r\n")), 501);
    EXPECT_EQ(status_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"), 400);
    EXPECT_TRUE(parse_http_head(get("Transfer-Encoding: Chunked\r\n")).chunked);
}

TEST(HttpHead, IsBounded) {
    const HttpHeadLimits limits{.uri_bytes = 11, .header_bytes = 20, .headers = 3};
    EXPECT_EQ(status_of(get(), limits), 0);
    EXPECT_EQ(status_of(get("a: 45678901234567\r\n"), limits), 0);
    EXPECT_EQ(status_of(get("a: 456789012345678\r\n"), limits), 0);
    EXPECT_EQ(status_of(get("a: 4567890123456789\r\n"), limits), 431);
    EXPECT_EQ(status_of(get("a: 1\r\nb: 2\r\n"), limits), 0);
    EXPECT_EQ(status_of(get("a: 1\r\nb: 2\r\nc: 3\r\n"), limits), 431);
    EXPECT_EQ(status_of("GET /health?a=bc HTTP/1.1\r\nHost: a\r\n\r\n", limits), 414);
}

TEST(HttpHead, ForAHandlerHoldsNoKeyAndNothingToActOn) {
    const std::string text = print_for_handler(parse_http_head(
        "POST /v1/x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer secret\r\n"
        "X-Api-Key: secret\r\nAccept: */*\r\nAccept-Encoding: br\r\nRange: bytes=0-1\r\n"
        "Upgrade: websocket\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"));
    EXPECT_EQ(text,
              "POST /v1/x HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
              "content-length: 2\r\nConnection: Keep-Alive\r\n\r\n");
}

TEST(HttpHead, ForAHandlerReadsAsTheSameRequest) {
    const HttpHead head = parse_http_head(get("Expect: 100-Continue\r\nConnection: close\r\n"));
    const HttpHead again = parse_http_head(print_for_handler(head));
    EXPECT_EQ(again.target, head.target);
    EXPECT_EQ(again.header("expect"), "100-continue");
    EXPECT_TRUE(again.close);
}

TEST(HttpHead, OfAnyBytesIsRefusedOrReadsTheSameForAHandler) {
    const std::string whole =
        get("Content-Type: application/json\r\nContent-Length: 12\r\n"
            "Connection: close\r\nExpect: 100-continue\r\n");
    constexpr std::string_view marks("\r\n :/?#\0\x01\x7f\xff,;1aZ", 16);
    int taken = 0;
    for (uint32_t seed = 0; seed < 5000; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::string text = whole;
        for (uint32_t i = 0; i <= seed % 4; ++i) {
            const size_t at = random() % text.size();
            switch (random() % 3) {
                case 0:
                    text[at] = marks[random() % marks.size()];
                    break;
                case 1:
                    text.insert(at, 1, marks[random() % marks.size()]);
                    break;
                case 2:
                    text.erase(at, 1 + random() % 3);
                    break;
            }
            if (text.empty()) break;
        }
        try {
            const HttpHead head = parse_http_head(text);
            const HttpHead again = parse_http_head(print_for_handler(head));
            ++taken;
            EXPECT_EQ(again.method, head.method);
            EXPECT_EQ(again.target, head.target);
            EXPECT_EQ(again.content_length, head.content_length);
            EXPECT_EQ(again.chunked, head.chunked);
            EXPECT_EQ(again.close, head.close);
        } catch (const RequestError& error) {
            EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
        }
    }
    EXPECT_GT(taken, 500);
}

}  // namespace
}  // namespace pleat
