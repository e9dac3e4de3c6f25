#include "chat/json_scanner.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

namespace pleat {
namespace {

using Status = JsonScanner::Status;

/// Whether a text is one whole object, array or string and nothing else.
bool takes(std::string_view text) {
    JsonScanner scanner;
    for (size_t i = 0; i < text.size(); ++i) {
        const Status status = scanner.feed(text[i]);
        if (status == Status::bad) return false;
        if (status == Status::done) return i + 1 == text.size();
    }
    return false;
}

TEST(JsonScanner, TakesJson) {
    for (const std::string text :
         {"{}", "[]", "\"\"", R"({"a": [1, -0.5e+3, true, false, null, "\u00e9\ud83d\ude00\n"]})",
          " [ 0 , 10 ]", R"(["\"\\\/"])", "[[[]],{}]", "[0e1]"}) {
        EXPECT_TRUE(takes(text)) << text;
    }
}

TEST(JsonScanner, RefusesAnythingElse) {
    for (const std::string text : {"{",
                                   "{]",
                                   "[1,]",
                                   "{\"a\":1,}",
                                   "[01]",
                                   "[1.]",
                                   "[.5]",
                                   "[+1]",
                                   "[1e]",
                                   "[tru]",
                                   "[nul1]",
                                   "[\"\n\"]",
                                   R"(["\x"])",
                                   R"(["\ud800"])",
                                   R"(["\ude00"])",
                                   R"(["\ud800\u0041"])",
                                   "[1 2]",
                                   "{1: 2}",
                                   "{\"a\" 1}",
                                   "{\"a\"}",
                                   "[,1]",
                                   "[--1]",
                                   "x"}) {
        EXPECT_FALSE(takes(text)) << text;
    }
    EXPECT_TRUE(takes(std::string(200, '[') + std::string(200, ']')));
    EXPECT_FALSE(takes(std::string(201, '[') + std::string(201, ']')));
}

TEST(JsonScannerProperty, AgreesWithTheLibrary) {
    const std::string seed_text =
        R"({"a": [1, -0.5e+3, true, {"b": null}], "c\n\u00e9": "\ud83d\ude00 x", "d": {}})";
    int valid = 0;
    for (uint32_t seed = 0; seed < 20'000; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        std::string text = seed_text;
        for (size_t n = rng() % 3; n > 0; --n) {
            static constexpr std::string_view letters = "{}[],:\"\\ue0123.-+ tnxdE";
            const size_t at = rng() % text.size();
            if (rng() % 2) {
                text[at] = letters[rng() % letters.size()];
            } else {
                text.erase(at, 1 + rng() % 3);
            }
        }
        const auto json = nlohmann::json::parse(text, nullptr, false);
        valid += json.is_discarded() ? 0 : 1;
        EXPECT_EQ(takes(text), json.is_structured() || json.is_string()) << text;
    }
    EXPECT_GT(valid, 2000);
}

}  // namespace
}  // namespace pleat
