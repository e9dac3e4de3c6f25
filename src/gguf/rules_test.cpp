#include "gguf/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pleat::gguf {
namespace {

using testing::Eq;
using testing::HasSubstr;
using testing::Optional;

TEST(Escaped, KeepsPrintableTextAndSpellsOutTheRest) {
    EXPECT_EQ(escaped("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
    EXPECT_EQ(escaped("a\nb\x1b\xc3\xa9"), R"(a\x0ab\x1b\xc3\xa9)");
    EXPECT_EQ(escaped(R"(say "hi" \o/)"), R"(say \"hi\" \\o/)");
}

TEST(Escaped, CutsWhatIsLong) {
    EXPECT_EQ(escaped(std::string(96, 'x')), std::string(96, 'x'));
    EXPECT_EQ(escaped(std::string(97, 'x')), std::string(96, 'x') + "...");
}

TEST(KeyRule, TakesOneTo65535BytesWithoutControlCharacters) {
    EXPECT_EQ(key_fault("general.architecture"), std::nullopt);
    EXPECT_EQ(key_fault(std::string(65535, 'k')), std::nullopt);
    EXPECT_THAT(key_fault(std::string(65536, 'k')), Optional(HasSubstr("65536 bytes")));
    EXPECT_THAT(key_fault(""), Optional(HasSubstr("empty")));
    EXPECT_THAT(key_fault("a\tb"), Optional(HasSubstr("byte 0x09")));
}

TEST(TensorNameRule, TakesWhatFitsIntoATensorOfGgml) {
    EXPECT_EQ(tensor_name_fault("output.weight"), std::nullopt);
    EXPECT_EQ(tensor_name_fault(std::string(63, 'n')), std::nullopt);
    EXPECT_THAT(tensor_name_fault(std::string(64, 'n')), Optional(HasSubstr("64 bytes")));
}

TEST(AlignmentRule, TakesPowersOfTwoUpToOneMebibyte) {
    for (uint32_t a = 1; a <= 1U << 20U; a *= 2) EXPECT_EQ(alignment_fault(a), std::nullopt) << a;
    EXPECT_THAT(alignment_fault(uint32_t{0}), Optional(HasSubstr("is 0")));
    EXPECT_THAT(alignment_fault(uint32_t{48}), Optional(HasSubstr("is 48")));
    EXPECT_THAT(alignment_fault(uint64_t{32}), Optional(HasSubstr("type u64, expected u32")));
}

TEST(TypeRule, TakesExactlyTheTypesThatThisGgmlKnows) {
    for (uint32_t type = 0; type < GGML_TYPE_COUNT; ++type) {
        const bool known = ggml_blck_size(static_cast<ggml_type>(type)) > 0;
        EXPECT_EQ(!tensor_type_fault(type).has_value(), known) << type;
    }
    EXPECT_TRUE(tensor_type_fault(GGML_TYPE_COUNT).has_value());
    EXPECT_TRUE(tensor_type_fault(UINT32_MAX).has_value());
}

TEST(ShapeRule, FindsTheSameSizesAsGgml) {
    for (uint32_t type = 0; type < GGML_TYPE_COUNT; ++type) {
        if (tensor_type_fault(type)) continue;
        const auto known = static_cast<ggml_type>(type);
        const auto row = static_cast<uint64_t>(3 * ggml_blck_size(known));
        uint64_t bytes = 0;
        EXPECT_EQ(shape_fault(known, std::vector<uint64_t>{row, 5, 7}, bytes), std::nullopt);
        EXPECT_EQ(bytes, ggml_row_size(known, static_cast<int64_t>(row)) * 35) << type;
    }
}

TEST(ShapeRule, StopsJustBelow63Bits) {
    uint64_t bytes = 0;
    const uint64_t most = (uint64_t{1} << 63U) - 1;
    EXPECT_EQ(shape_fault(GGML_TYPE_I8, std::vector<uint64_t>{most}, bytes), std::nullopt);
    EXPECT_EQ(bytes, most);
    EXPECT_TRUE(shape_fault(GGML_TYPE_I8, std::vector<uint64_t>{most + 1}, bytes));
    EXPECT_TRUE(shape_fault(GGML_TYPE_I8, std::vector<uint64_t>{most, 2}, bytes));
    EXPECT_TRUE(shape_fault(GGML_TYPE_F16, std::vector<uint64_t>{most}, bytes));
    // Fewer bytes than elements: both have to fit, since ggml counts elements in 63 bits.
    const uint64_t two_62 = uint64_t{1} << 62U;
    EXPECT_TRUE(shape_fault(GGML_TYPE_Q4_0, std::vector<uint64_t>{two_62, 2}, bytes));
}

}  // namespace
}  // namespace pleat::gguf
