#include "text/utf8_stream.h"

#include <gtest/gtest.h>

#include <random>

namespace pleat {
namespace {

const std::string mark = "\xEF\xBF\xBD";

/// Feeds pieces of random sizes.
std::string stream(const std::string& bytes, uint32_t seed) {
    std::mt19937 rng(seed);
    Utf8Stream utf8;
    std::string out;
    for (size_t i = 0; i < bytes.size();) {
        const size_t n = std::min<size_t>(bytes.size() - i, rng() % 4);
        const std::string part = utf8.feed(std::string_view(bytes).substr(i, n));
        EXPECT_TRUE(is_utf8(part));
        EXPECT_LE(utf8.pending().size(), 3U);
        out += part;
        i += n;
    }
    return out + utf8.flush();
}

TEST(Utf8Stream, HoldsBackAnIncompleteCharacter) {
    Utf8Stream utf8;
    EXPECT_EQ(utf8.feed("a\xE2\x82"), "a");
    EXPECT_EQ(utf8.pending(), "\xE2\x82");
    EXPECT_EQ(utf8.feed("\xAC!"), "\xE2\x82\xAC!");
    EXPECT_EQ(utf8.flush(), "");
}

TEST(Utf8Stream, MarksWhatIsIncompleteAtTheEnd) {
    Utf8Stream utf8;
    EXPECT_EQ(utf8.feed("\xF0\x9F\x99"), "");
    EXPECT_EQ(utf8.flush(), mark);
    EXPECT_EQ(utf8.flush(), "");
}

TEST(Utf8Stream, MarksEachPartThatCannotBecomeACharacter) {  // Unicode 15, tables 3-8 to 3-11
    EXPECT_EQ(to_utf8("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
              mark + mark + mark + mark + mark + mark + mark + mark + "A");
    EXPECT_EQ(to_utf8("\xED\xA0\x80\x41"), mark + mark + mark + "A");
    EXPECT_EQ(to_utf8("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
              mark + mark + mark + mark + mark + "A" + mark + mark + "B");
    EXPECT_EQ(to_utf8("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), mark + mark + mark + mark + "A");
}

TEST(Utf8Stream, KeepsTheFirstAndLastCharacterOfEachLength) {
    for (const std::string text :
         {"\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
          "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
        EXPECT_TRUE(is_utf8(text));
        EXPECT_EQ(to_utf8(text), text);
    }
    EXPECT_EQ(to_utf8(std::string(1, '\0')), std::string(1, '\0'));
}

TEST(Utf8StreamProperty, HowTheBytesAreCutPlaysNoPart) {
    for (uint32_t seed = 0; seed < 2000; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        const std::vector<std::string> parts{
            "a",        "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x99\x82",
            "\xF0\x9F", "\xE2",     "\x80",         "\xFF"};
        std::string bytes;
        for (uint32_t i = rng() % 12; i > 0; --i) bytes += parts[rng() % parts.size()];
        EXPECT_EQ(stream(bytes, seed + 1), to_utf8(bytes));
        EXPECT_TRUE(is_utf8(to_utf8(bytes)));
        if (is_utf8(bytes)) {
            EXPECT_EQ(to_utf8(bytes), bytes);
        }
    }
}

}  // namespace
}  // namespace pleat
