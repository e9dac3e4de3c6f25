#include "gguf/cursor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace pleat::gguf {
namespace {

template <typename F>
std::string message_of(F&& action) {
    try {
        action();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

TEST(Cursor, ReadsLittleEndianNumbersAtAnyAddress) {
    Cursor cursor("f", bytes(std::string_view("\xff\x01\x02\x03\x04\x05\x06", 7)));
    EXPECT_EQ(cursor.number<uint8_t>("a"), 0xff);
    EXPECT_EQ(cursor.number<uint32_t>("b"), 0x04030201U);
    std::array<uint16_t, 1> rest{};
    cursor.numbers(std::span<uint16_t>(rest), "c");
    EXPECT_EQ(rest[0], 0x0605);
    EXPECT_EQ(cursor.left(), 0U);
}

TEST(Cursor, ReadsAStringWithItsLength) {
    Cursor cursor("f", bytes(std::string_view("\x02\0\0\0\0\0\0\0hi!", 11)));
    EXPECT_EQ(cursor.string("name"), "hi");
    EXPECT_EQ(cursor.offset(), 10U);
}

TEST(Cursor, NamesWhatItWasReadingWhenTheFileEnds) {
    Cursor cursor("f.gguf", bytes("abc"));
    const auto read = [&] { cursor.number<uint32_t>("value"); };
    EXPECT_EQ(message_of(read),
              "f.gguf: header is cut off: its value needs 4 bytes at byte 0, the file has 3 left");
    cursor.enter("tensor", 2, 9);
    EXPECT_THAT(message_of(read), testing::StartsWith("f.gguf: tensor 3 of 9 is cut off"));
    cursor.set_name("a\nb");
    EXPECT_THAT(message_of(read), testing::StartsWith(R"(f.gguf: tensor a\x0ab is cut off)"));
}

TEST(Cursor, DoesNotWrapAroundAtALengthNear2To64) {
    Cursor cursor("f", bytes("\xff\xff\xff\xff\xff\xff\xff\xff rest"));
    EXPECT_THAT(message_of([&] { cursor.string("name"); }),
                testing::HasSubstr("needs 18446744073709551615 bytes at byte 8, the file has 5"));
}

}  // namespace
}  // namespace pleat::gguf
