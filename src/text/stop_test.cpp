#include "text/stop.h"

#include <gtest/gtest.h>

#include <random>

namespace pleat {
namespace {

TEST(StopMatcher, HoldsBackWhatCouldBecomeAStopString) {
    StopMatcher stop({"END"});
    EXPECT_EQ(stop.feed("one E"), "one ");
    EXPECT_EQ(stop.feed("N"), "");
    EXPECT_EQ(stop.feed("X"), "ENX");
    EXPECT_FALSE(stop.stopped());
}

TEST(StopMatcher, EndsBeforeTheStopString) {
    StopMatcher stop({"END"});
    EXPECT_EQ(stop.feed("one EN"), "one ");
    EXPECT_EQ(stop.feed("D two"), "");
    EXPECT_TRUE(stop.stopped());
    EXPECT_EQ(stop.matched(), "END");
    EXPECT_EQ(stop.feed("three"), "");
    EXPECT_EQ(stop.flush(), "");
}

TEST(StopMatcher, GivesWhatWasHeldBackAtTheEnd) {
    StopMatcher stop({"END"});
    EXPECT_EQ(stop.feed("EN"), "");
    EXPECT_EQ(stop.flush(), "EN");
}

TEST(StopMatcher, SeesAStopStringThatBeginsInsideOfAFailedOne) {
    StopMatcher stop({"aab"});
    EXPECT_EQ(stop.feed("aaab"), "a");
    EXPECT_TRUE(stop.stopped());
}

TEST(StopMatcher, FallsBackToTheLongestBeginningThatStillFits) {
    StopMatcher stop({"aabaaaa"});
    EXPECT_EQ(stop.feed("aabaaabaaaa"), "aaba");
    EXPECT_TRUE(stop.stopped());
}

TEST(StopMatcher, TakesTheStopStringThatIsCompleteFirst) {
    StopMatcher stop({"abcd", "bc", "c"});
    EXPECT_EQ(stop.feed("xabcd"), "xa");
    EXPECT_EQ(stop.matched(), "bc");
}

TEST(StopMatcher, LetsAllTextThroughWithoutStopStrings) {
    StopMatcher stop({"", ""});
    EXPECT_EQ(stop.feed("text"), "text");
    EXPECT_EQ(stop.flush(), "");
}

TEST(StopMatcherProperty, EqualsASearchInTheWholeText) {
    for (uint32_t seed = 0; seed < 3000; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 rng(seed);
        const auto word = [&](uint32_t max) {
            std::string text(rng() % max, ' ');
            for (char& c : text) c = static_cast<char>('a' + rng() % 2);
            return text;
        };
        const std::vector<std::string> stops{word(9) + "a", word(7) + "b"};
        // Beginnings of the stop strings one after another: what a matcher has to fall back from.
        std::string text = word(5);
        for (uint32_t i = rng() % 8; i > 0; --i) {
            const std::string& stop = stops[rng() % 2];
            text += stop.substr(0, rng() % (stop.size() + 1));
        }
        size_t end = std::string::npos;
        size_t length = 0;
        for (const std::string& s : stops) {
            const size_t at = text.find(s);
            if (at == std::string::npos) continue;
            const size_t here = at + s.size();
            if (end == std::string::npos || here < end || (here == end && s.size() > length)) {
                end = here;
                length = s.size();
            }
        }
        StopMatcher stop(stops);
        std::string out;
        for (size_t i = 0; i < text.size();) {
            const size_t n = std::min<size_t>(text.size() - i, 1 + rng() % 3);
            out += stop.feed(std::string_view(text).substr(i, n));
            i += n;
        }
        out += stop.flush();
        EXPECT_EQ(stop.stopped(), end != std::string::npos);
        EXPECT_EQ(out, end == std::string::npos ? text : text.substr(0, end - length));
    }
}

TEST(StopMatcherAbuse, IsLinearForAStopStringThatRepeatsItself) {
    StopMatcher stop({std::string(20'000, 'a') + "b"});
    const std::string text(100'000, 'a');
    std::string out = stop.feed(text);
    out += stop.flush();
    EXPECT_EQ(out, text);
}

}  // namespace
}  // namespace pleat
