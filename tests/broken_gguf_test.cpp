// Files that a download, a disk or an enemy can produce: each is refused in one line that says
// where, what was found and what was expected. Add a case by adding a row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/file.h"
#include "gguf/header.h"
#include "support/raw_gguf.h"
#include "support/temp_dir.h"

namespace pleat {
namespace {

using testing::HasSubstr;

struct BrokenCase {
    std::string name;
    std::function<void(RawGguf&)> break_it;  ///< of tiny_raw_gguf()
    std::string message;                     ///< what follows the file's name, or a part of it
};

constexpr uint64_t two_63 = uint64_t{1} << 63U;

/// The file ends `keep` bytes after the first byte of this name.
void cut_inside(RawGguf& f, const std::string& name, int64_t keep) {
    const size_t at = f.bytes().find(name);
    ASSERT_NE(at, std::string::npos);
    f.cut_at = at + static_cast<size_t>(keep);
}

/// The same for a key, which is made the last one: with many keys to come the count alone is wrong.
void cut_key(RawGguf& f, const std::string& name, int64_t keep) {
    std::stable_partition(f.keys.begin(), f.keys.end(),
                          [&](const RawKey& key) { return key.name.text != name; });
    cut_inside(f, name, keep);
}

std::vector<BrokenCase> not_gguf_cases() {
    return {
        {"Empty", [](auto& f) { f.instead = ""; }, "is empty, expected a GGUF file"},
        {"OnlyHalfTheMagic", [](auto& f) { f.cut_at = 2; }, "is cut off after 2 bytes"},
        {"OtherMagic", [](auto& f) { f.magic = "\x01\x02\x03\x04"; },
         R"(begins with the bytes "\x01\x02\x03\x04", expected "GGUF")"},
        {"Zeros", [](auto& f) { f.instead = std::string(4096, '\0'); }, R"("\x00\x00\x00\x00")"},
        {"SwappedMagic", [](auto& f) { f.magic = "FUGG"; }, "has the magic FUGG, expected GGUF"},
        {"LowerCaseMagic", [](auto& f) { f.magic = "gguf"; }, R"("gguf", expected "GGUF")"},
        {"OldGgml", [](auto& f) { f.magic = "lmgg"; }, "is a GGML file from before GGUF"},
        {"OldGgjt", [](auto& f) { f.magic = "tjgg"; }, "is a GGML file from before GGUF"},
        {"LfsPointer",
         [](auto& f) {
             f.instead = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 123\n";
         },
         "is a Git LFS pointer, not the model; fetch the model with `git lfs pull`"},
        {"Html", [](auto& f) { f.instead = "<!DOCTYPE html>\n<html>404</html>"; },
         R"(is a text file that begins "<!DOCTYPE html>\x0a<html>40")"},
        {"Safetensors",
         [](auto& f) { f.instead = bytes_of(uint64_t{2}) + "{}" + std::string(64, '\1'); },
         "is a safetensors file, expected a GGUF file"},
        {"Checkpoint", [](auto& f) { f.magic = "PK\x03\x04"; }, "is a zip archive"},
    };
}

std::vector<BrokenCase> header_cases() {
    return {
        {"Version0", [](auto& f) { f.version = 0; }, "header has GGUF version 0, expected 2 or 3"},
        {"Version1", [](auto& f) { f.version = 1; }, "has GGUF version 1, expected 2 or 3"},
        {"Version4", [](auto& f) { f.version = 4; }, "has GGUF version 4, expected 2 or 3"},
        {"VersionHuge", [](auto& f) { f.version = 0xffffffff; }, "version 4294967295, expected 2"},
        {"BigEndian", [](auto& f) { f.version = 0x03000000; }, "a big-endian file, expected"},
        {"EndsAfterMagic", [](auto& f) { f.cut_at = 4; },
         "header is cut off: its version needs 4 bytes at byte 4, the file has 0 left"},
        {"EndsAfterVersion", [](auto& f) { f.cut_at = 8; }, "its number of tensors needs 8 bytes"},
        {"EndsAfterTensorCount", [](auto& f) { f.cut_at = 16; }, "its number of keys needs 8"},
        {"EndsAfterCounts", [](auto& f) { f.cut_at = 24; }, "header claims 9 keys, the 0 bytes"},
        {"Keys2To63", [](auto& f) { f.n_keys = two_63; }, "claims 9223372036854775808 keys"},
        {"KeysMinusOne", [](auto& f) { f.n_keys = UINT64_MAX; }, "18446744073709551615 keys"},
        {"Tensors2To63", [](auto& f) { f.n_tensors = two_63; }, "9223372036854775808 tensors"},
        {"TensorsMinusOne", [](auto& f) { f.n_tensors = UINT64_MAX; }, "claims 1844674407370955"},
        {"MoreTensorsThanBytes", [](auto& f) { f.n_tensors = 1000; }, "claims 1000 tensors, the "},
        {"OneKeyTooMany", [](auto& f) { f.n_keys = f.keys.size() + 1; },
         "tensor 1 of 3 is cut off: its name needs "},
        {"OneTensorTooMany", [](auto& f) { f.n_tensors = 4; }, "tensor 4 of 4 "},
    };
}

std::vector<BrokenCase> key_cases() {
    return {
        {"KeyOfLength0", [](auto& f) { f.keys[2].name = RawString(""); },
         "key 3 of 9 has an empty name, expected 1 to 65535 bytes"},
        {"KeyOf65536Bytes", [](auto& f) { f.keys[0].name = std::string(65536, 'k'); },
         "key 1 of 9 has a name of 65536 bytes, expected 1 to 65535"},
        {"KeyLength2To63", [](auto& f) { f.keys[1].name.length = two_63; },
         "key 2 of 9 is cut off: its name needs 9223372036854775808 bytes"},
        {"KeyLengthMinusOne", [](auto& f) { f.keys[1].name.length = UINT64_MAX; },
         "key 2 of 9 is cut off: its name needs 18446744073709551615 bytes"},
        {"KeyWithNul", [](auto& f) { f.keys[2].name = std::string("a\0b", 3); },
         "key 3 of 9 has byte 0x00 in its name"},
        {"KeyWithNewline", [](auto& f) { f.keys[2].name = RawString("a\nb"); },
         "key 3 of 9 has byte 0x0a in its name, expected no control characters"},
        {"KeyTwice", [](auto& f) { f.keys.push_back(f.keys[2]); },
         "key llama.block_count comes twice, expected once"},
        {"ValueType13", [](auto& f) { f.key("llama.block_count").type = 13; },
         "key llama.block_count has value type 13, expected 0 to 12"},
        {"ValueTypeMinusOne", [](auto& f) { f.key("llama.block_count").type = 0xffffffff; },
         "key llama.block_count has value type 4294967295, expected 0 to 12"},
        {"Bool2", [](auto& f) { f.key("tokenizer.ggml.add_bos_token").value = "\2"; },
         "key tokenizer.ggml.add_bos_token has bool 2, expected 0 or 1"},
        {"String2To63",
         [](auto& f) {
             f.keys[0] = raw_string("general.architecture", {"llama", two_63});
         },
         "key general.architecture is cut off: its string needs 9223372036854775808 bytes"},
        {"StringOneByteLongerThanTheFile",
         [](auto& f) {
             f.keys[0].value = bytes_of(f.bytes().size() - 24 - 8 - 20 - 4 - 8 + 1) + "llama";
         },
         "key general.architecture is cut off: its string needs "},
        {"ControlCharactersAreEscaped",
         [](auto& f) {
             f.keys[2] = {"a\x80\"b", 99, ""};
         },
         R"(key a\x80\"b has value type 99)"},
    };
}

std::vector<BrokenCase> array_cases() {
    const auto array = [](uint32_t type, uint64_t count, const std::string& entries) {
        return [=](RawGguf& f) { f.keys[2] = raw_array("k.array", type, count, entries); };
    };
    return {
        {"ArrayOfArrays", array(9, 1, raw_array("", 4, 1, bytes_of(1)).value),
         "key k.array is an array of arrays, which is not supported"},
        {"ArrayType13", array(13, 1, "x"), "key k.array has array type 13, expected 0 to 12"},
        {"ArrayTypeMinusOne", array(0xffffffff, 1, "x"), "has array type 4294967295"},
        {"ArrayOf2To60Bytes", array(0, uint64_t{1} << 60U, ""),
         "key k.array is an array of 1152921504606846976 entries of at least 1 bytes"},
        {"ArrayOf2To63Numbers", array(4, two_63, ""), "array of 9223372036854775808 entries"},
        {"ArrayWhoseBytesOverflow", array(10, (uint64_t{1} << 61U) + 1, bytes_of(uint64_t{7})),
         "array of 2305843009213693953 entries of at least 8 bytes"},
        {"ArrayOf2To61Strings", array(8, uint64_t{1} << 61U, ""),
         "array of 2305843009213693952 entries of at least 8 bytes"},
        {"ArrayMinusOne", array(12, UINT64_MAX, ""), "array of 18446744073709551615 entries"},
        {"ArrayString2To63", array(8, 1, RawString("x", two_63).bytes()),
         "key k.array is cut off: its array entry needs 9223372036854775808 bytes"},
        {"ArrayBool2", array(7, 3, std::string("\0\1\2", 3)),
         "key k.array has bool 2 at index 2 of its array, expected 0 or 1"},
    };
}

std::vector<BrokenCase> alignment_cases() {
    const auto alignment = [](const RawKey& key) {
        return [=](RawGguf& f) { f.key("general.alignment") = key; };
    };
    return {
        {"Alignment0", alignment(raw_u32("general.alignment", 0)),
         "key general.alignment is 0, expected a power of two from 1 to 1048576"},
        {"Alignment24", alignment(raw_u32("general.alignment", 24)),
         "key general.alignment is 24, expected a power of two"},
        {"Alignment2To21", alignment(raw_u32("general.alignment", 1U << 21U)),
         "key general.alignment is 2097152, expected a power of two from 1 to 1048576"},
        {"AlignmentU64", alignment(raw_u64("general.alignment", 32)),
         "key general.alignment has type u64, expected u32"},
        {"AlignmentI32", alignment(raw_i32("general.alignment", 32)), "has type i32, expected u32"},
        {"AlignmentString", alignment(raw_string("general.alignment", "32")),
         "key general.alignment has type string, expected u32"},
        {"AlignmentArray", alignment(raw_array("general.alignment", 4, 1, bytes_of(32))),
         "key general.alignment has type array of 1 u32, expected u32"},
        {"DataPutForASmallerAlignment", alignment(raw_u32("general.alignment", 512)),
         "tensor blk.0.attn_norm.weight has its data at offset 128, expected a multiple of 512"},
    };
}

std::vector<BrokenCase> tensor_cases() {
    const auto norm = [](const std::function<void(RawTensor&)>& change) {
        return [=](RawGguf& f) { change(f.tensor("blk.0.attn_norm.weight")); };
    };
    const auto embd = [](const std::function<void(RawTensor&)>& change) {
        return [=](RawGguf& f) { change(f.tensor("token_embd.weight")); };
    };
    return {
        {"TensorNameEmpty", norm([](auto& t) { t.name = RawString(""); }),
         "tensor 2 of 3 has a name of 0 bytes, expected 1 to 63"},
        {"TensorNameOf64Bytes", norm([](auto& t) { t.name = std::string(64, 'n'); }),
         "tensor 2 of 3 has a name of 64 bytes, expected 1 to 63"},
        {"TensorNameLength2To63", norm([](auto& t) { t.name.length = two_63; }),
         "tensor 2 of 3 is cut off: its name needs 9223372036854775808 bytes"},
        {"TensorNameWithNul", norm([](auto& t) { t.name = std::string("x\0y", 3); }),
         "tensor 2 of 3 has byte 0x00 in its name"},
        {"TensorNameWithEscape", norm([](auto& t) { t.name = RawString("\x1b[2J"); }),
         "tensor 2 of 3 has byte 0x1b in its name, expected no control characters"},
        {"TensorTwice", [](auto& f) { f.tensor("output_norm.weight").name = "token_embd.weight"; },
         "tensor token_embd.weight comes twice"},
        {"Dimensions0", norm([](auto& t) { t.ne = {}; }),
         "tensor blk.0.attn_norm.weight has 0 dimensions, expected 1 to 4"},
        {"Dimensions5", norm([](auto& t) {
             t.ne = {32, 1, 1, 1, 1};
         }),
         "tensor blk.0.attn_norm.weight has 5 dimensions, expected 1 to 4"},
        {"DimensionsMinusOne", norm([](auto& t) { t.n_dims = 0xffffffff; }),
         "tensor blk.0.attn_norm.weight has 4294967295 dimensions"},
        {"FirstDimension0", norm([](auto& t) { t.ne = {0}; }),
         "tensor blk.0.attn_norm.weight has 0 elements in dimension 0, expected 1 to"},
        {"LastDimension0", embd([](auto& t) {
             t.ne = {32, 0};
         }),
         "tensor token_embd.weight has 0 elements in dimension 1"},
        {"Dimension2To63", norm([](auto& t) { t.ne = {two_63}; }),
         "has 9223372036854775808 elements in dimension 0, expected 1 to 9223372036854775807"},
        {"DimensionMinusOne", embd([](auto& t) {
             t.ne = {32, UINT64_MAX};
         }),
         "has 18446744073709551615 elements in dimension 1"},
        {"ProductOverflows64Bits", norm([](auto& t) {
             t.ne = {two_63 / 2, 8, 8, 8};
         }),
         "has shape [4611686018427387904, 8, 8, 8] of type f32, expected fewer than 2^63"},
        {"ProductWrapsToSomethingSmall", norm([](auto& t) {
             t.ne = {uint64_t{1} << 32U, (uint64_t{1} << 32U) + 1};
         }),
         "has shape [4294967296, 4294967297] of type f32, expected fewer than 2^63"},
        {"BytesOverflow", norm([](auto& t) { t.ne = {two_63 - 1}; }),
         "has shape [9223372036854775807] of type f32, expected fewer than 2^63"},
        {"RowOfHalfABlock", embd([](auto& t) {
             t.ne = {48, 2};
         }),
         "tensor token_embd.weight has rows of 48 elements, expected a multiple of 32 for type "
         "q8_0"},
        {"RowOfASuperBlockTooShort", embd([](auto& t) { t.type = 12; }),
         "has rows of 32 elements, expected a multiple of 256 for type q4_K"},
        {"TypeRemoved", embd([](auto& t) { t.type = 4; }),
         "tensor token_embd.weight has type number 4, which ggml no longer supports"},
        {"TypeRepackedAndRemoved", embd([](auto& t) { t.type = 31; }), "has type number 31, which"},
        {"TypeTooNew", embd([](auto& t) { t.type = 1000; }),
         "tensor token_embd.weight has type number 1000, expected less than"},
        {"TypeMinusOne", embd([](auto& t) { t.type = 0xffffffff; }), "has type number 4294967295"},
        {"OffsetOdd", norm([](auto& t) { t.offset = 129; }),
         "tensor blk.0.attn_norm.weight has its data at offset 129, expected a multiple of 32"},
        {"OffsetPastTheEnd", norm([](auto& t) { t.offset = 4096; }),
         "tensor blk.0.attn_norm.weight is cut off: its 128 bytes at byte "},
        {"OffsetNear2To64", norm([](auto& t) { t.offset = UINT64_MAX - 31; }),
         "tensor blk.0.attn_norm.weight has its data at offset 18446744073709551584"},
        {"OffsetPlusSizeWraps", norm([](auto& t) { t.offset = UINT64_MAX - 1023; }),
         "tensor blk.0.attn_norm.weight "},
        {"SameOffset", norm([](auto& t) { t.offset = 0; }), " overlaps tensor "},
        {"OverlapByOneBlock", norm([](auto& t) { t.offset = 96; }),
         "tensor blk.0.attn_norm.weight at byte "},
        {"LongerThanTheGap", embd([](auto& t) {
             t.ne = {32, 4};
         }),
         "overlaps tensor token_embd.weight, which ends at byte "},
        {"BiggerThanTheFile", [](auto& f) { f.tensor("output_norm.weight").ne = {1U << 30U}; },
         "tensor output_norm.weight is cut off: its 4294967296 bytes at byte "},
    };
}

std::vector<BrokenCase> cut_cases() {
    const auto key = [](const std::string& name, int64_t keep) {
        return [=](RawGguf& f) { cut_key(f, name, keep); };
    };
    const auto tensor = [](int64_t keep) {
        return [=](RawGguf& f) { cut_inside(f, "output_norm.weight", keep); };
    };
    return {
        {"CutInAKeyLength", key("llama.block_count", -3),
         "key 9 of 9 is cut off: its name needs 8 bytes"},
        {"CutInAKey", key("llama.block_count", 9),
         "key 9 of 9 is cut off: its name needs 17 bytes"},
        {"CutBeforeAValueType", key("llama.block_count", 17),
         "key llama.block_count is cut off: its value type needs 4 bytes"},
        {"CutInAValue", key("llama.block_count", 17 + 4 + 2),
         "key llama.block_count is cut off: its value needs 4 bytes at byte "},
        {"CutInAString", key("general.architecture", 20 + 4 + 8 + 3),
         "key general.architecture is cut off: its string needs 5 bytes"},
        {"CutInAnArrayType", key("test.flags", 10 + 4 + 1),
         "key test.flags is cut off: its array type needs 4 bytes"},
        {"CutInAnArrayLength", key("test.flags", 10 + 4 + 4 + 5),
         "key test.flags is cut off: its array length needs 8 bytes"},
        {"CutInAnArray", key("test.flags", 10 + 4 + 4 + 8 + 1),
         "key test.flags is an array of 2 entries of at least 1 bytes, the file has 1 bytes left"},
        {"CutInATensorName", tensor(5), "tensor 3 of 3 is cut off: its name needs 18 bytes"},
        {"CutInTheNumberOfDimensions", tensor(19),
         "tensor output_norm.weight is cut off: its number of dimensions needs 4 bytes"},
        {"CutInTheShape", tensor(18 + 4 + 31),
         "tensor output_norm.weight is cut off: its shape needs 32 bytes"},
        {"CutInTheType", tensor(18 + 4 + 32 + 3),
         "tensor output_norm.weight is cut off: its type needs 4 bytes"},
        {"CutInTheOffset", tensor(18 + 4 + 32 + 4 + 7),
         "tensor output_norm.weight is cut off: its offset needs 8 bytes"},
        {"CutBeforeTheData", [](auto& f) { f.data.clear(); },
         "tensor token_embd.weight is cut off"},
        {"CutByOneByte", [](auto& f) { f.data.pop_back(); },
         "tensor output_norm.weight is cut off: its 20 bytes at byte "},
    };
}

std::vector<BrokenCase> all_cases() {
    std::vector<BrokenCase> all;
    for (const auto& group : {not_gguf_cases(), header_cases(), key_cases(), array_cases(),
                              alignment_cases(), tensor_cases(), cut_cases()}) {
        all.insert(all.end(), group.begin(), group.end());
    }
    return all;
}

/// For GoogleTest, which would print bytes.
void PrintTo(const BrokenCase& row, std::ostream* out) { *out << row.name; }

class BrokenGguf : public testing::TestWithParam<BrokenCase> {};

TEST_P(BrokenGguf, IsRefusedInOneLineThatSaysWhatIsWrong) {
    RawGguf raw = tiny_raw_gguf();
    GetParam().break_it(raw);
    const TempDir dir;
    const std::string path = dir.file_with("broken.gguf", raw.bytes());
    try {
        gguf::File::open(path);
        FAIL() << "was accepted";
    } catch (const Error& e) {
        const std::string message = e.what();
        EXPECT_THAT(message, testing::StartsWith(path + ": "));
        EXPECT_THAT(message, HasSubstr(GetParam().message));
        EXPECT_EQ(message.find('\n'), std::string::npos);
        EXPECT_LT(message.size(), 400U + path.size());
    }
}

INSTANTIATE_TEST_SUITE_P(Corpus, BrokenGguf, testing::ValuesIn(all_cases()),
                         [](const auto& row) { return row.param.name; });

TEST(TinyGguf, IsAcceptedBeforeItIsBroken) {
    const TempDir dir;
    const gguf::File file = gguf::File::open(dir.file_with("tiny.gguf", tiny_raw_gguf().bytes()));
    EXPECT_EQ(file.metadata().size(), 9U);
    ASSERT_EQ(file.tensors().size(), 3U);
    EXPECT_EQ(file.data(file.tensors()[2]).size(), 20U);
}

/// A buffer of exactly this size, so that the sanitizer sees a read of one byte too many.
bool accepted_in_memory(const std::string& bytes, size_t size) {
    const auto copy = std::make_unique<std::byte[]>(size);
    std::copy_n(reinterpret_cast<const std::byte*>(bytes.data()), size, copy.get());
    try {
        gguf::parse_header("cut.gguf", {copy.get(), size});
        return true;
    } catch (const Error&) {
        return false;
    }
}

TEST(CutGguf, IsRefusedWhereverItEnds) {
    const std::string bytes = tiny_raw_gguf().bytes();
    for (size_t size = 0; size < bytes.size(); ++size) {
        EXPECT_FALSE(accepted_in_memory(bytes, size)) << "cut at " << size;
    }
    EXPECT_TRUE(accepted_in_memory(bytes, bytes.size()));
}

TEST(CutGguf, NamesTheFileAtEveryBoundaryBetweenFields) {
    const RawGguf tiny = tiny_raw_gguf();
    const std::string bytes = tiny.bytes();
    const TempDir dir;
    const std::vector<size_t> boundaries = tiny.boundaries();
    EXPECT_GT(boundaries.size(), 40U);
    for (const size_t size : boundaries) {
        const std::string path = dir.file_with("cut.gguf", bytes.substr(0, size));
        try {
            gguf::File::open(path);
            ADD_FAILURE() << "accepted when cut at " << size;
        } catch (const Error& e) {
            EXPECT_THAT(e.what(), testing::StartsWith(path + ": ")) << "cut at " << size;
        }
    }
}

}  // namespace
}  // namespace pleat
