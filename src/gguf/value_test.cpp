#include "gguf/value.h"

#include <gtest/gtest.h>

namespace pleat::gguf {
namespace {

TEST(Value, KnowsItsTypeInTheFile) {
    EXPECT_EQ(type_of(uint8_t{1}), ValueType::u8);
    EXPECT_EQ(type_of(int8_t{1}), ValueType::i8);
    EXPECT_EQ(type_of(uint16_t{1}), ValueType::u16);
    EXPECT_EQ(type_of(int16_t{1}), ValueType::i16);
    EXPECT_EQ(type_of(uint32_t{1}), ValueType::u32);
    EXPECT_EQ(type_of(int32_t{1}), ValueType::i32);
    EXPECT_EQ(type_of(1.0F), ValueType::f32);
    EXPECT_EQ(type_of(true), ValueType::boolean);
    EXPECT_EQ(type_of(std::string("x")), ValueType::string);
    EXPECT_EQ(type_of(Array{}), ValueType::array);
    EXPECT_EQ(type_of(uint64_t{1}), ValueType::u64);
    EXPECT_EQ(type_of(int64_t{1}), ValueType::i64);
    EXPECT_EQ(type_of(1.0), ValueType::f64);
}

TEST(Value, SaysItsTypeInWords) {
    EXPECT_EQ(describe_type(int16_t{1}), "i16");
    EXPECT_EQ(describe_type(false), "bool");
    EXPECT_EQ(describe_type(Array{ValueType::boolean, std::vector<uint8_t>{0, 1}}),
              "array of 2 bool");
    EXPECT_EQ(describe_type(Array{ValueType::string, std::vector<std::string>{"a"}}),
              "array of 1 string");
}

TEST(Value, CountsTheEntriesOfAnArray) {
    EXPECT_EQ(Array{}.size(), 0U);
    EXPECT_EQ((Array{ValueType::f64, std::vector<double>{1, 2, 3}}).size(), 3U);
}

}  // namespace
}  // namespace pleat::gguf
