#include "serve/http_error.h"

#include <gtest/gtest.h>
#include <httplib.h>

namespace pleat {
namespace {

using namespace std::string_literals;

using nlohmann::ordered_json;

TEST(HttpError, IsOpenAisObjectWithTheTypeOfItsStatus) {
    httplib::Response response;
    set_error(response, 400, "n is -1, expected 1 to 128", "n");
    EXPECT_EQ(response.status, 400);
    EXPECT_EQ(response.body, R"({"error":{"code":400,"message":"n is -1, expected 1 to 128",)"
                             R"("type":"invalid_request_error","param":"n"}})");
    set_error(response, 404, "no such model");
    EXPECT_EQ(response.body, R"({"error":{"code":404,"message":"no such model",)"
                             R"("type":"not_found_error","param":null}})");
}

TEST(HttpError, MayNameItsTypeAndSayMore) {
    const ordered_json body = RequestError(400, "too long", "prompt", "exceed_context_size_error",
                                           {{"n_prompt_tokens", 9}, {"n_ctx", 8}})
                                  .body();
    EXPECT_EQ(body["error"]["type"], "exceed_context_size_error");
    EXPECT_EQ(body["error"]["n_prompt_tokens"], 9);
    EXPECT_EQ(body["error"]["n_ctx"], 8);
}

TEST(HttpError, SaysWhenToComeBackToABusyServer) {
    httplib::Response response;
    set_error(response, 503, "the queue is full");
    EXPECT_EQ(response.get_header_value("Retry-After"), "1");
}

TEST(HttpError, TakesBytesThatAreNoUtf8) {
    httplib::Response response;
    set_error(response, 400, "\"\xff\" is no number");
    EXPECT_EQ(ordered_json::parse(response.body)["error"]["message"], "\"\uFFFD\" is no number");
    const std::string with_nul = "no \"a\0b\"; there are c"s;
    set_error(response, 404, with_nul);
    EXPECT_EQ(ordered_json::parse(response.body)["error"]["message"], with_nul);
}

}  // namespace
}  // namespace pleat
