#include "gguf/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/error.h"
#include "gguf/split.h"
#include "gguf/writer.h"
#include "support/raw_gguf.h"
#include "support/temp_dir.h"

namespace pleat::gguf {
namespace {

using testing::HasSubstr;

template <typename F>
std::string message_of(F&& action) {
    try {
        action();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

std::string open_message(const std::string& path) {
    return message_of([&] { File::open(path); });
}

TEST(File, FindsKeysAndTensorsByName) {
    const TempDir dir;
    const File file = File::open(dir.file_with("a.gguf", tiny_raw_gguf().bytes()));
    ASSERT_NE(file.find("llama.block_count"), nullptr);
    EXPECT_EQ(*file.find("llama.block_count"), Value(uint32_t{1}));
    EXPECT_EQ(file.find("llama.block"), nullptr);
    ASSERT_NE(file.find_tensor("output_norm.weight"), nullptr);
    EXPECT_EQ(file.find_tensor("output_norm.weight")->ne[0], 5);
    EXPECT_EQ(file.find_tensor("output_norm"), nullptr);
}

TEST(File, ReadsVersion2LikeVersion3) {
    const TempDir dir;
    RawGguf raw = tiny_raw_gguf();
    const File v3 = File::open(dir.file_with("v3.gguf", raw.bytes()));
    raw.version = 2;
    const File v2 = File::open(dir.file_with("v2.gguf", raw.bytes()));
    EXPECT_EQ(v2.version(), 2U);
    EXPECT_EQ(v2.metadata(), v3.metadata());
    EXPECT_EQ(v2.tensors().size(), v3.tensors().size());
}

TEST(File, TakesTensorsInAnyOrderAndWithGaps) {
    const TempDir dir;
    RawGguf raw = tiny_raw_gguf();
    raw.data += std::string(1024, '\2');
    raw.tensors[0].offset = 1024;
    std::swap(raw.tensors[1], raw.tensors[2]);
    const File file = File::open(dir.file_with("a.gguf", raw.bytes()));
    EXPECT_EQ(file.data(file.tensors()[0])[101], std::byte{2});
}

TEST(File, StaysValidWhenItIsMoved) {
    const TempDir dir;
    File file = File::open(dir.file_with("a.gguf", tiny_raw_gguf().bytes()));
    const auto data = file.data(file.tensors()[1]);
    const File moved = std::move(file);
    EXPECT_EQ(moved.data(*moved.find_tensor("blk.0.attn_norm.weight")).data(), data.data());
    EXPECT_EQ(moved.u32("llama.block_count"), 1U);
}

TEST(File, NamesWhatCannotBeOpened) {
    const TempDir dir;
    EXPECT_EQ(open_message(dir.path()), dir.path() + ": is a directory, expected a GGUF file");
    EXPECT_EQ(open_message(dir.file("none.gguf")),
              dir.file("none.gguf") + ": cannot open: No such file or directory");
    EXPECT_THAT(open_message("/dev/null"), testing::StartsWith("/dev/null: "));
    const std::string secret = dir.file_with("secret.gguf", "GGUF");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    EXPECT_THAT(open_message(secret), testing::StartsWith(secret + ": "));
}

/// A split model in a directory of its own, its parts as a test wants them.
class SplitModel : public testing::Test {
  protected:
    static constexpr uint32_t n_parts = 3;

    /// Part `no` (from 0) holds tensors t<no>a and t<no>b.
    static RawGguf part(uint16_t no, const std::string& architecture = "llama") {
        RawGguf raw;
        if (no == 0) raw.keys.push_back(raw_string("general.architecture", architecture));
        raw.keys.push_back(raw_u16("split.no", no));
        raw.keys.push_back(raw_u16("split.count", n_parts));
        raw.keys.push_back(raw_i32("split.tensors.count", 2 * n_parts));
        const std::string name = "t" + std::to_string(no);
        raw.tensors = {{name + "a", {2}, 0, 0, {}}, {name + "b", {2}, 0, 32, {}}};
        raw.data = std::string(40, static_cast<char>('0' + no));
        return raw;
    }

    std::string path(uint32_t number) const {
        return split_path(dir_.file("model"), number, n_parts);
    }

    /// Writes all parts, one of them (by its number, from 1) changed, and opens the first.
    std::string message_with(uint32_t number, const std::function<void(RawGguf&)>& change) const {
        for (uint16_t no = 0; no < n_parts; ++no) {
            RawGguf raw = part(no);
            if (no + 1U == number) change(raw);
            dir_.file_with(std::filesystem::path(path(no + 1U)).filename().string(), raw.bytes());
        }
        return open_message(path(1));
    }

    TempDir dir_;
};

TEST_F(SplitModel, IsOpenedByItsFirstPart) {
    EXPECT_EQ(message_with(0, {}), "no error");
    const File file = File::open(path(1));
    EXPECT_EQ(file.parts().size(), 3U);
    ASSERT_EQ(file.tensors().size(), 6U);
    EXPECT_EQ(file.string("general.architecture"), "llama");
    const TensorInfo* tensor = file.find_tensor("t2b");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->part, 2U);
    EXPECT_EQ(file.data(*tensor)[0], std::byte{'2'});
    EXPECT_EQ(file.file_bytes(), std::filesystem::file_size(path(1)) +
                                     std::filesystem::file_size(path(2)) +
                                     std::filesystem::file_size(path(3)));
}

TEST_F(SplitModel, MayKeepAllTensorsOutOfItsFirstPart) {
    for (uint16_t no = 0; no < n_parts; ++no) {
        RawGguf raw = part(no);
        raw.key("split.tensors.count") = raw_i32("split.tensors.count", 4);
        if (no == 0) raw.tensors.clear();
        if (no == 0) raw.data.clear();
        dir_.file_with(std::filesystem::path(path(no + 1U)).filename().string(), raw.bytes());
    }
    EXPECT_EQ(File::open(path(1)).tensors().front().name, "t1a");
}

TEST_F(SplitModel, NamesTheFirstPartWhenAnotherIsOpened) {
    message_with(0, {});
    EXPECT_EQ(open_message(path(2)),
              path(2) + ": is part 2 of 3 of a split model; open the first part, " + path(1));
}

TEST_F(SplitModel, NamesAMissingPart) {
    message_with(0, {});
    std::filesystem::remove(path(2));
    EXPECT_EQ(open_message(path(1)), path(1) + ": part 2 of 3 is missing, expected " + path(2));
}

TEST_F(SplitModel, NamesThePartThatIsBroken) {
    EXPECT_THAT(message_with(3, [](RawGguf& raw) { raw.data.pop_back(); }),
                testing::StartsWith(path(3) + ": tensor t2b is cut off"));
}

TEST_F(SplitModel, HasToBeCalledAsItsPartsAreFound) {
    message_with(0, {});
    const std::string renamed = dir_.file("renamed.gguf");
    std::filesystem::rename(path(1), renamed);
    EXPECT_EQ(open_message(renamed),
              renamed +
                  ": is part 1 of 3 of a split model (split.no, split.count), so its name is "
                  "expected to be " +
                  split_path(dir_.file("renamed"), 1, 3));
    const std::string misnumbered = split_path(dir_.file("model"), 1, 2);
    std::filesystem::rename(renamed, misnumbered);
    EXPECT_THAT(open_message(misnumbered), HasSubstr("its name is expected to be " + path(1)));
}

TEST_F(SplitModel, IsRefusedWhenItsPartsDisagree) {
    const std::string of_first = " in this part of " + path(1);
    EXPECT_EQ(message_with(2, [](RawGguf& raw) { raw.key("split.no") = raw_u16("split.no", 2); }),
              path(2) + ": key split.no is 2, expected 1" + of_first);
    EXPECT_EQ(
        message_with(3, [](RawGguf& raw) { raw.key("split.count") = raw_u16("split.count", 4); }),
        path(3) + ": key split.count is 4, expected 3" + of_first);
    EXPECT_EQ(message_with(3, [](RawGguf& raw) { raw.keys.clear(); }),
              path(3) + ": key split.no is missing");
    EXPECT_EQ(message_with(1, [](RawGguf& raw) { raw.key("split.no") = raw_u16("split.no", 3); }),
              path(1) + ": key split.no is 3, expected less than split.count = 3");
}

TEST_F(SplitModel, IsRefusedWhenAPartIsOfAnotherModel) {
    EXPECT_EQ(message_with(3,
                           [](RawGguf& raw) {
                               raw.key("split.tensors.count") = raw_i32("split.tensors.count", 8);
                           }),
              path(3) + ": key split.tensors.count is 8, expected 6 in this part of " + path(1));
}

TEST_F(SplitModel, IsRefusedWhenTensorsAreLostOrComeTwice) {
    EXPECT_EQ(message_with(2, [](RawGguf& raw) { raw.tensors.pop_back(); }),
              path(1) + ": all 3 parts hold 5 tensors, expected split.tensors.count = 6");
    EXPECT_EQ(message_with(3, [](RawGguf& raw) { raw.tensors[0].name = "t0a"; }),
              path(3) + ": tensor t0a is in " + path(1) + " too, expected in one part only");
}

TEST_F(SplitModel, OfOnePartIsASingleFileOfAnyName) {
    RawGguf raw = tiny_raw_gguf();
    raw.keys.push_back(raw_u16("split.count", 1));
    EXPECT_EQ(File::open(dir_.file_with("any.gguf", raw.bytes())).parts().size(), 1U);
}

}  // namespace
}  // namespace pleat::gguf
