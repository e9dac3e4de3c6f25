#include "cli/escapes.h"

#include <gtest/gtest.h>

namespace pleat::cli {
namespace {

TEST(Escapes, NameControlCharactersAndBytes) {
    EXPECT_EQ(process_escapes(R"(a\nb\rc\td)"), "a\nb\rc\td");
    EXPECT_EQ(process_escapes(R"(\'\"\\n)"), "'\"\\n");
    EXPECT_EQ(process_escapes(R"(\x41\xc3\xA9)"), "A\u00e9");
    EXPECT_EQ(process_escapes(R"(\x00)"), std::string(1, '\0'));
}

TEST(Escapes, LeaveOtherBackslashesAlone) {
    EXPECT_EQ(process_escapes(R"(\d+\)"), R"(\d+\)");
    EXPECT_EQ(process_escapes(R"(\x4)"), R"(\x4)");
    EXPECT_EQ(process_escapes(R"(\xzz\x-1)"), R"(\xzz\x-1)");
    EXPECT_EQ(process_escapes(""), "");
}

}  // namespace
}  // namespace pleat::cli
