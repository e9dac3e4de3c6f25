#include "gguf/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "gguf/file.h"
#include "support/temp_dir.h"

namespace pleat::gguf {
namespace {

using testing::HasSubstr;

/// A tensor whose bytes count up from `first`, given in pieces of 7.
TensorToWrite counting(std::string name, ggml_type type, std::vector<int64_t> ne, size_t size,
                       int first = 0) {
    return {std::move(name), type, std::move(ne), [=](const auto& sink) {
                for (size_t done = 0; done < size;) {
                    std::vector<std::byte> piece(std::min<size_t>(7, size - done));
                    for (std::byte& b : piece) b = static_cast<std::byte>(first + int(done++));
                    sink(piece);
                }
            }};
}

template <typename F>
std::string message_of(F&& action) {
    try {
        action();
    } catch (const Error& e) {
        return e.what();
    }
    return "no error";
}

size_t files_in(const TempDir& dir) {
    const std::filesystem::directory_iterator all(dir.path());
    return static_cast<size_t>(std::distance(begin(all), end(all)));
}

template <typename T>
Array extremes(ValueType type) {
    return {type, std::vector<T>{std::numeric_limits<T>::lowest(), T{0}, T{1},
                                 std::numeric_limits<T>::max()}};
}

std::vector<KeyValue> one_of_each() {
    return {
        {"s.u8", uint8_t{255}},
        {"s.i8", int8_t{-128}},
        {"s.u16", uint16_t{65535}},
        {"s.i16", int16_t{-32768}},
        {"s.u32", uint32_t{4294967295}},
        {"s.i32", std::numeric_limits<int32_t>::min()},
        {"s.u64", std::numeric_limits<uint64_t>::max()},
        {"s.i64", std::numeric_limits<int64_t>::min()},
        {"s.f32", 0.1F},
        {"s.f64", 0.1},
        {"s.true", true},
        {"s.false", false},
        {"s.string", std::string("caf\xc3\xa9\nwith a \0 inside", 21)},
        {"s.empty", std::string()},
        {"a.u8", extremes<uint8_t>(ValueType::u8)},
        {"a.i8", extremes<int8_t>(ValueType::i8)},
        {"a.u16", extremes<uint16_t>(ValueType::u16)},
        {"a.i16", extremes<int16_t>(ValueType::i16)},
        {"a.u32", extremes<uint32_t>(ValueType::u32)},
        {"a.i32", extremes<int32_t>(ValueType::i32)},
        {"a.u64", extremes<uint64_t>(ValueType::u64)},
        {"a.i64", extremes<int64_t>(ValueType::i64)},
        {"a.f32", extremes<float>(ValueType::f32)},
        {"a.f64", extremes<double>(ValueType::f64)},
        {"a.bool", Array{ValueType::boolean, std::vector<uint8_t>{1, 0, 1}}},
        {"a.string", Array{ValueType::string, std::vector<std::string>{"a", "", "b\xff"}}},
        {"a.none", Array{ValueType::string, std::vector<std::string>{}}},
    };
}

TEST(Writer, KeepsEveryValueWithItsType) {
    const TempDir dir;
    write(dir.file("a.gguf"), one_of_each(), {});
    const File file = File::open(dir.file("a.gguf"));
    EXPECT_EQ(file.version(), 3U);
    EXPECT_EQ(file.metadata(), one_of_each());
}

TEST(Writer, WritesToWhatALinkStandsFor) {
    const TempDir dir;
    std::filesystem::create_directory(dir.file("disk"));
    std::filesystem::create_symlink(dir.file("disk/a.gguf"), dir.file("link"));
    for (int round = 0; round < 2; ++round) {  // a link to no file yet, then to one
        write(dir.file("link"), one_of_each(), {});
        EXPECT_TRUE(std::filesystem::is_symlink(dir.file("link")));
        EXPECT_EQ(File::open(dir.file("disk/a.gguf")).metadata(), one_of_each());
    }
}

TEST(Writer, KeepsTensorsInOrderWithTheirBytes) {
    const TempDir dir;
    write(dir.file("a.gguf"), {},
          {counting("x", GGML_TYPE_F32, {3, 2}, 24), counting("y", GGML_TYPE_Q4_0, {64}, 36, 100),
           counting("z", GGML_TYPE_I8, {1, 1, 1, 2}, 2, 200)});
    const File file = File::open(dir.file("a.gguf"));
    ASSERT_EQ(file.tensors().size(), 3U);
    const TensorInfo& y = file.tensors()[1];
    EXPECT_EQ(y.name, "y");
    EXPECT_EQ(y.type, GGML_TYPE_Q4_0);
    EXPECT_EQ(y.n_dims, 1);
    EXPECT_EQ(y.ne, (std::array<int64_t, 4>{64, 1, 1, 1}));
    ASSERT_EQ(file.data(y).size(), 36U);
    EXPECT_EQ(file.data(y)[0], std::byte{100});
    EXPECT_EQ(file.data(y)[35], std::byte{135});
    EXPECT_EQ(file.tensors()[2].n_dims, 4);
    EXPECT_EQ(file.data(file.tensors()[2])[1], std::byte{201});
}

TEST(Writer, AlignsDataAsTheMetadataSays) {
    const TempDir dir;
    write(dir.file("a.gguf"), {{"general.alignment", uint32_t{4096}}},
          {counting("x", GGML_TYPE_I8, {3}, 3), counting("y", GGML_TYPE_I8, {3}, 3)});
    const File file = File::open(dir.file("a.gguf"));
    EXPECT_EQ(file.alignment(), 4096U);
    EXPECT_EQ(file.tensors()[0].offset, 4096U);
    EXPECT_EQ(file.tensors()[1].offset, 8192U);
    EXPECT_EQ(file.file_bytes(), 3 * 4096U);
}

TEST(Writer, TakesDataBiggerThanItsBuffer) {
    const TempDir dir;
    std::vector<std::byte> data(5'000'000);
    for (size_t i = 0; i < data.size(); ++i)
        data[i] = static_cast<std::byte>(i * 2654435761U >> 24U);
    const auto in_two = [&](const auto& sink) {
        sink(std::span(data).first(10));
        sink(std::span(data).subspan(10));
    };
    write(dir.file("a.gguf"), {}, {{"x", GGML_TYPE_I8, {5'000'000}, in_two}});
    const File file = File::open(dir.file("a.gguf"));
    EXPECT_TRUE(std::ranges::equal(file.data(file.tensors()[0]), data));
}

struct RefusedCase {
    const char* name;
    std::vector<KeyValue> metadata;
    std::vector<TensorToWrite> tensors;
    const char* message;
};

class WriterRefuses : public testing::TestWithParam<RefusedCase> {};

TEST_P(WriterRefuses, WhatAReaderWouldRefuseAndLeavesNoFile) {
    const TempDir dir;
    const std::string path = dir.file("a.gguf");
    const std::string message =
        message_of([&] { write(path, GetParam().metadata, GetParam().tensors); });
    EXPECT_THAT(message, testing::StartsWith(path + ": "));
    EXPECT_THAT(message, HasSubstr(GetParam().message));
    EXPECT_EQ(files_in(dir), 0U);
}

std::vector<RefusedCase> refused_cases() {
    const auto f32 = [](const std::string& name, std::vector<int64_t> ne, size_t bytes) {
        return counting(name, GGML_TYPE_F32, std::move(ne), bytes);
    };
    return {
        {"KeyTwice", {{"k", 1.0F}, {"k", 2.0F}}, {}, "key k comes twice"},
        {"KeyEmpty", {{"", 1.0F}}, {}, "has an empty name"},
        {"Alignment", {{"general.alignment", uint32_t{3}}}, {}, "general.alignment is 3"},
        {"ArrayOfAnotherType",
         {{"k", Array{ValueType::u32, std::vector<int32_t>{1}}}},
         {},
         "key k is an array of type u32 that holds i32"},
        {"ArrayOfArrays", {{"k", Array{ValueType::array, {}}}}, {}, "array of type array that"},
        {"Bool2", {{"k", Array{ValueType::boolean, std::vector<uint8_t>{2}}}}, {}, "has bool 2"},
        {"TensorTwice", {}, {f32("t", {1}, 4), f32("t", {1}, 4)}, "tensor t comes twice"},
        {"NameTooLong", {}, {f32(std::string(64, 'n'), {1}, 4)}, "has a name of 64 bytes"},
        {"NoDimensions", {}, {f32("t", {}, 4)}, "tensor t has 0 dimensions"},
        {"FiveDimensions", {}, {f32("t", {1, 1, 1, 1, 1}, 4)}, "tensor t has 5 dimensions"},
        {"NegativeDimension", {}, {f32("t", {-1}, 4)}, "elements in dimension 0, expected 1 to"},
        {"HalfABlock", {}, {counting("t", GGML_TYPE_Q8_0, {16}, 17)}, "expected a multiple of 32"},
        {"TypeCount", {}, {counting("t", GGML_TYPE_COUNT, {16}, 17)}, "tensor t has type number"},
        {"NoData", {}, {{"t", GGML_TYPE_F32, {1}, {}}}, "tensor t has no data to write"},
        {"TooLittleData", {}, {f32("t", {2}, 7)}, "tensor t was given 7 bytes of data, expected 8"},
        {"TooMuchData", {}, {f32("t", {2}, 9)}, "tensor t was given more than its 8 bytes"},
    };
}

INSTANTIATE_TEST_SUITE_P(Rules, WriterRefuses, testing::ValuesIn(refused_cases()),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(Writer, LeavesAnExistingFileUntouchedWhenItFails) {
    const TempDir dir;
    const std::string path = dir.file_with("a.gguf", "precious");
    const auto throwing = [](const auto&) { throw std::runtime_error("source went away"); };
    EXPECT_THROW(write(path, {}, {{"t", GGML_TYPE_F32, {1}, throwing}}), std::runtime_error);
    EXPECT_EQ(read_bytes(path), "precious");
    EXPECT_EQ(files_in(dir), 1U);
}

TEST(Writer, ReplacesAnExistingFileWhenItIsDone) {
    const TempDir dir;
    const std::string path = dir.file_with("a.gguf", "old");
    write(path, {{"k", uint32_t{7}}}, {});
    EXPECT_EQ(File::open(path).u32("k"), 7U);
    EXPECT_EQ(files_in(dir), 1U);
}

TEST(Writer, NamesThePathAndTheReasonWhenItCannotCreateTheFile) {
    const TempDir dir;
    const std::string path = dir.file("no/such/dir/a.gguf");
    EXPECT_EQ(message_of([&] { write(path, {}, {}); }),
              path + ": cannot write: No such file or directory");
}

TEST(Writer, DoesNotReplaceADirectory) {
    const TempDir dir;
    std::filesystem::create_directory(dir.file("d.gguf"));
    EXPECT_EQ(message_of([&] { write(dir.file("d.gguf"), {}, {}); }),
              dir.file("d.gguf") + ": cannot write: Is a directory");
    EXPECT_EQ(files_in(dir), 1U);
}

TEST(Writer, RemovesWhatItWroteWhenTheDiskIsFull) {
    const TempDir dir;
    // The limit on a file's size stands for a full disk: write() fails half-way.
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
    auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100'000, before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const std::string message = message_of(
        [&] { write(dir.file("a.gguf"), {}, {counting("t", GGML_TYPE_I8, {200'000}, 200'000)}); });
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
    EXPECT_EQ(message, dir.file("a.gguf") + ": cannot write: File too large");
    EXPECT_EQ(files_in(dir), 0U);
}

}  // namespace
}  // namespace pleat::gguf
