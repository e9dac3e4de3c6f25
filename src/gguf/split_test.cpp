#include "gguf/split.h"

#include <gtest/gtest.h>

namespace pleat::gguf {
namespace {

TEST(SplitName, HasFiveDigitsForPartAndCount) {
    EXPECT_EQ(parse_split_name("models/qwen-00002-of-00011.gguf"),
              (SplitName{"models/qwen", 2, 11}));
    EXPECT_EQ(parse_split_name("-00001-of-00002.gguf"), (SplitName{"", 1, 2}));
}

TEST(SplitName, IsNotFoundInOtherNames) {
    for (const char* name :
         {"", "qwen.gguf", "qwen-1-of-2.gguf", "qwen-0001-of-0002.gguf", "qwen-00001-of-00002.bin",
          "qwen_00001-of-00002.gguf", "qwen-0000a-of-00002.gguf", "qwen-00001-of--0002.gguf",
          "qwen-+0001-of-00002.gguf", "qwen-00001-of-00002.gguf.part"}) {
        EXPECT_EQ(parse_split_name(name), std::nullopt) << name;
    }
}

TEST(SplitName, IsWrittenAsItIsRead) {
    EXPECT_EQ(split_path("dir/m", 3, 12), "dir/m-00003-of-00012.gguf");
    EXPECT_EQ(parse_split_name(split_path("dir/m", 3, 12)), (SplitName{"dir/m", 3, 12}));
}

}  // namespace
}  // namespace pleat::gguf
