// File's typed access to metadata.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/temp_dir.h"

namespace pleat::gguf {
namespace {

using testing::ElementsAre;
using testing::Optional;

class Metadata : public testing::Test {
  protected:
    File with(const Value& value) const {
        write(path_, {{"k", value}}, {});
        return File::open(path_);
    }
    template <typename F>
    std::string message_of(F&& action) const {
        try {
            action();
        } catch (const Error& e) {
            const std::string message = e.what();
            EXPECT_THAT(message, testing::StartsWith(path_ + ": key k "));
            return message.substr(path_.size() + 2);
        }
        return "no error";
    }

    TempDir dir_;
    std::string path_ = dir_.file("m.gguf");
};

TEST_F(Metadata, GivesIntegersOfAnyWidthThatFit) {
    EXPECT_EQ(with(uint8_t{7}).u32("k"), 7U);
    EXPECT_EQ(with(int8_t{7}).u32("k"), 7U);
    EXPECT_EQ(with(uint16_t{7}).u32("k"), 7U);
    EXPECT_EQ(with(int32_t{7}).u32("k"), 7U);
    EXPECT_EQ(with(uint64_t{4294967295}).u32("k"), 4294967295U);
    EXPECT_EQ(with(int64_t{7}).required_u32("k"), 7U);
}

TEST_F(Metadata, RefusesIntegersThatDoNotFit) {
    EXPECT_EQ(message_of([&] { with(int32_t{-1}).u32("k"); }),
              "key k is -1, expected 0 to 4294967295");
    EXPECT_EQ(message_of([&] { with(uint64_t{4294967296}).u32("k"); }),
              "key k is 4294967296, expected 0 to 4294967295");
}

TEST_F(Metadata, RefusesOtherTypesByTheirNames) {
    EXPECT_EQ(message_of([&] { with(1.0F).u32("k"); }), "key k has type f32, expected an integer");
    EXPECT_EQ(message_of([&] { with(true).u32("k"); }), "key k has type bool, expected an integer");
    EXPECT_EQ(message_of([&] { with(uint32_t{1}).f32("k"); }), "key k has type u32, expected f32");
    EXPECT_EQ(message_of([&] { with(uint32_t{1}).boolean("k"); }),
              "key k has type u32, expected bool");
    EXPECT_EQ(message_of([&] { with(uint32_t{1}).string("k"); }),
              "key k has type u32, expected string");
    EXPECT_EQ(message_of([&] { with(uint32_t{1}).i32_array("k"); }),
              "key k has type u32, expected an array of integers");
    EXPECT_EQ(message_of([&] {
                  with(Array{ValueType::f32, std::vector<float>{1, 2}}).u32("k");
              }),
              "key k has type array of 2 f32, expected an integer");
}

TEST_F(Metadata, HasNoValueForAnAbsentKeyUnlessItIsRequired) {
    const File file = with(uint32_t{1});
    EXPECT_EQ(file.find("x"), nullptr);
    EXPECT_EQ(file.u32("x"), std::nullopt);
    EXPECT_EQ(file.f32("x"), std::nullopt);
    EXPECT_EQ(file.boolean("x"), std::nullopt);
    EXPECT_EQ(file.string("x"), std::nullopt);
    EXPECT_EQ(file.u32_per_layer("x", 2), std::nullopt);
    EXPECT_EQ(file.boolean_per_layer("x", 2), std::nullopt);
    EXPECT_EQ(file.i32_array("x"), std::nullopt);
    for (const auto& required : {std::function<void()>([&] { file.required_u32("x"); }),
                                 std::function<void()>([&] { file.required_f32("x"); }),
                                 std::function<void()>([&] { file.required_string("x"); })}) {
        try {
            required();
            ADD_FAILURE() << "no error";
        } catch (const Error& e) {
            EXPECT_EQ(std::string(e.what()), path_ + ": key x is missing");
        }
    }
}

TEST_F(Metadata, GivesFloatsBooleansAndStrings) {
    EXPECT_EQ(with(0.5F).required_f32("k"), 0.5F);
    EXPECT_EQ(with(0.5).f32("k"), 0.5F);
    EXPECT_EQ(message_of([&] { with(1e300).f32("k"); }),
              "key k is 1e+300, expected a number that fits into f32");
    EXPECT_EQ(with(false).boolean("k"), false);
    EXPECT_EQ(with(std::string("s")).required_string("k"), "s");
}

TEST_F(Metadata, RepeatsAScalarForEveryLayer) {
    EXPECT_THAT(with(uint16_t{8}).u32_per_layer("k", 3), Optional(ElementsAre(8, 8, 8)));
    EXPECT_THAT(with(true).boolean_per_layer("k", 2), Optional(ElementsAre(true, true)));
}

TEST_F(Metadata, TakesAnArrayWithOneEntryPerLayer) {
    const File numbers = with(Array{ValueType::i32, std::vector<int32_t>{1, 2, 3}});
    EXPECT_THAT(numbers.u32_per_layer("k", 3), Optional(ElementsAre(1, 2, 3)));
    EXPECT_EQ(message_of([&] { numbers.u32_per_layer("k", 4); }),
              "key k has 3 entries, expected 4, one per layer");
    const File flags = with(Array{ValueType::boolean, std::vector<uint8_t>{1, 0}});
    EXPECT_THAT(flags.boolean_per_layer("k", 2), Optional(ElementsAre(true, false)));
    EXPECT_EQ(message_of([&] { flags.boolean_per_layer("k", 1); }),
              "key k has 2 entries, expected 1, one per layer");
}

TEST_F(Metadata, TakesZerosAndOnesForFlagsInAnArrayOnly) {
    const File numbers = with(Array{ValueType::u32, std::vector<uint32_t>{0, 1}});
    EXPECT_THAT(numbers.boolean_per_layer("k", 2), Optional(ElementsAre(false, true)));
    EXPECT_EQ(
        message_of([&] {
            with(Array{ValueType::u32, std::vector<uint32_t>{0, 6}}).boolean_per_layer("k", 2);
        }),
        "key k is 6 at index 1, expected 0 or 1");
    // A period, as gemma3's sliding_window_pattern, is not a flag.
    EXPECT_EQ(message_of([&] { with(uint32_t{1}).boolean_per_layer("k", 2); }),
              "key k has type u32, expected bool or an array of bool");
}

TEST_F(Metadata, NamesThePlaceOfAnEntryThatDoesNotFit) {
    const File file = with(Array{ValueType::i64, std::vector<int64_t>{1, -5}});
    EXPECT_EQ(message_of([&] { file.u32_per_layer("k", 2); }),
              "key k is -5 at index 1, expected 0 to 4294967295");
    EXPECT_THAT(file.i32_array("k"), Optional(ElementsAre(1, -5)));
    EXPECT_EQ(message_of([&] {
                  with(Array{ValueType::boolean, std::vector<uint8_t>{1}}).i32_array("k");
              }),
              "key k has type array of 1 bool, expected an array of integers");
}

}  // namespace
}  // namespace pleat::gguf
