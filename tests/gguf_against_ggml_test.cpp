// Valid files mean the same to ggml's own reader and to ours: keys, types, values, tensors,
// offsets.
#include <fmt/format.h>
#include <ggml-cpp.h>
#include <gguf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/raw_gguf.h"
#include "support/temp_dir.h"

namespace pleat {
namespace {

gguf_context_ptr open_with_ggml(const std::string& path) {
    gguf_context_ptr context(gguf_init_from_file(path.c_str(), {/*no_alloc=*/true, nullptr}));
    if (!context) throw std::runtime_error("ggml refuses " + path);
    return context;
}

template <typename T>
void expect_scalar(const gguf_context* context, int64_t id, T ours) {
    // Bits, so that a NaN equals itself.
    EXPECT_EQ(std::memcmp(gguf_get_val_data(context, id), &ours, sizeof(T)), 0);
}

void expect_array(const gguf_context* context, int64_t id, const gguf::Array& ours) {
    ASSERT_EQ(gguf_get_arr_type(context, id), static_cast<gguf_type>(ours.type));
    ASSERT_EQ(gguf_get_arr_n(context, id), ours.size());
    std::visit(
        [&](const auto& items) {
            using Item = typename std::decay_t<decltype(items)>::value_type;
            if constexpr (std::is_same_v<Item, std::string>) {
                for (size_t i = 0; i < items.size(); ++i) {
                    ASSERT_STREQ(gguf_get_arr_str(context, id, i), items[i].c_str()) << i;
                }
            } else if (!items.empty()) {
                const void* theirs = gguf_get_arr_data(context, id);
                EXPECT_EQ(std::memcmp(theirs, items.data(), items.size() * sizeof(Item)), 0);
            }
        },
        ours.items);
}

void expect_same_metadata(const gguf_context* context, const gguf::File& file) {
    ASSERT_EQ(gguf_get_n_kv(context), static_cast<int64_t>(file.metadata().size()));
    for (size_t i = 0; i < file.metadata().size(); ++i) {
        const auto& [key, value] = file.metadata()[i];
        const auto id = static_cast<int64_t>(i);
        SCOPED_TRACE(key);
        ASSERT_EQ(gguf_get_key(context, id), key);
        ASSERT_EQ(gguf_get_kv_type(context, id), static_cast<gguf_type>(gguf::type_of(value)));
        if (const auto* array = std::get_if<gguf::Array>(&value)) {
            expect_array(context, id, *array);
        } else if (const auto* text = std::get_if<std::string>(&value)) {
            EXPECT_STREQ(gguf_get_val_str(context, id), text->c_str());
        } else {
            std::visit(
                [&](const auto& v) {
                    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(v)>>) {
                        expect_scalar(context, id, v);
                    }
                },
                value);
        }
    }
}

void expect_same_tensors(const gguf_context* context, const gguf::File& file) {
    ASSERT_EQ(gguf_get_n_tensors(context), static_cast<int64_t>(file.tensors().size()));
    for (size_t i = 0; i < file.tensors().size(); ++i) {
        const gguf::TensorInfo& tensor = file.tensors()[i];
        const auto id = static_cast<int64_t>(i);
        SCOPED_TRACE(tensor.name);
        ASSERT_EQ(gguf_get_tensor_name(context, id), tensor.name);
        EXPECT_EQ(gguf_get_tensor_type(context, id), tensor.type);
        EXPECT_EQ(gguf_get_tensor_size(context, id), tensor.bytes);
        EXPECT_EQ(gguf_get_data_offset(context) + gguf_get_tensor_offset(context, id),
                  tensor.offset);
        EXPECT_TRUE(
            std::equal(tensor.ne.begin(), tensor.ne.end(), gguf_get_tensor_ne(context, id)));
    }
}

void expect_same(const std::string& path) {
    SCOPED_TRACE(path);
    const gguf_context_ptr context = open_with_ggml(path);
    const gguf::File file = gguf::File::open(path);
    EXPECT_EQ(gguf_get_version(context.get()), file.version());
    EXPECT_EQ(gguf_get_alignment(context.get()), file.alignment());
    expect_same_metadata(context.get(), file);
    expect_same_tensors(context.get(), file);
}

std::vector<ggml_type> all_types() {
    std::vector<ggml_type> types;
    for (int type = 0; type < GGML_TYPE_COUNT; ++type) {
        const auto known = static_cast<ggml_type>(type);
        if (ggml_blck_size(known) > 0) types.push_back(known);
    }
    return types;
}

/// A tensor of each type in each number of dimensions, of zeros.
std::vector<gguf::TensorToWrite> every_type_and_rank() {
    std::vector<gguf::TensorToWrite> tensors;
    for (const ggml_type type : all_types()) {
        std::vector<int64_t> ne{3 * ggml_blck_size(type)};
        for (const int64_t more : {5, 1, 2, 0}) {
            const auto rows =
                std::accumulate(ne.begin() + 1, ne.end(), int64_t{1}, std::multiplies<>());
            const std::vector<std::byte> zeros(ggml_row_size(type, ne[0]) *
                                               static_cast<size_t>(rows));
            tensors.push_back({fmt::format("{}.{}d", ggml_type_name(type), ne.size()), type, ne,
                               [zeros](const auto& sink) { sink(zeros); }});
            ne.push_back(more);
        }
    }
    return tensors;
}

std::vector<gguf::KeyValue> one_of_each() {
    using gguf::Array;
    using gguf::ValueType;
    return {
        {"u8", uint8_t{200}},
        {"i8", int8_t{-100}},
        {"u16", uint16_t{60000}},
        {"i16", int16_t{-30000}},
        {"u32", uint32_t{4000000000}},
        {"i32", int32_t{-2000000000}},
        {"u64", UINT64_MAX},
        {"i64", INT64_MIN},
        {"f32", 0.1F},
        {"f64", 0.1},
        {"bool", true},
        {"string", std::string("caf\xc3\xa9")},
        {"a.u8", Array{ValueType::u8, std::vector<uint8_t>{1, 255}}},
        {"a.i8", Array{ValueType::i8, std::vector<int8_t>{-1, 1}}},
        {"a.u16", Array{ValueType::u16, std::vector<uint16_t>{1, 65535}}},
        {"a.i16", Array{ValueType::i16, std::vector<int16_t>{-1, 1}}},
        {"a.u32", Array{ValueType::u32, std::vector<uint32_t>{1, UINT32_MAX}}},
        {"a.i32", Array{ValueType::i32, std::vector<int32_t>{-1, 1}}},
        {"a.u64", Array{ValueType::u64, std::vector<uint64_t>{1, UINT64_MAX}}},
        {"a.i64", Array{ValueType::i64, std::vector<int64_t>{-1, 1}}},
        {"a.f32", Array{ValueType::f32, std::vector<float>{0.1F, -0.0F}}},
        {"a.f64", Array{ValueType::f64, std::vector<double>{0.1, -0.0}}},
        {"a.bool", Array{ValueType::boolean, std::vector<uint8_t>{0, 1, 1}}},
        {"a.string", Array{ValueType::string, std::vector<std::string>{"", "a", "\xe2\x96\x81"}}},
        {"a.none", Array{ValueType::i32, std::vector<int32_t>{}}},
    };
}

TEST(AgainstGgml, WhatWeWriteMeansTheSameToBoth) {
    const TempDir dir;
    gguf::write(dir.file("a.gguf"), one_of_each(), every_type_and_rank());
    expect_same(dir.file("a.gguf"));
}

TEST(AgainstGgml, OtherAlignmentsMeanTheSameToBoth) {
    const TempDir dir;
    for (const uint32_t alignment : {1U, 2U, 16U, 64U, 4096U}) {
        gguf::write(dir.file("a.gguf"), {{"general.alignment", alignment}}, every_type_and_rank());
        expect_same(dir.file("a.gguf"));
    }
}

TEST(AgainstGgml, FilesWithoutTensorsOrKeysMeanTheSameToBoth) {
    const TempDir dir;
    gguf::write(dir.file("a.gguf"), {}, {});
    expect_same(dir.file("a.gguf"));
}

TEST(AgainstGgml, Version2MeansTheSameToBoth) {
    const TempDir dir;
    RawGguf raw = tiny_raw_gguf();
    raw.version = 2;
    raw.data.resize(288);  // ggml wants the last tensor padded
    expect_same(dir.file_with("v2.gguf", raw.bytes()));
}

TEST(AgainstGgml, WhatGgmlWritesMeansTheSameToBoth) {
    const TempDir dir;
    const gguf_context_ptr context(gguf_init_empty());
    gguf_set_val_str(context.get(), "general.architecture", "llama");
    gguf_set_val_bool(context.get(), "flag", true);
    const char* texts[] = {"a", "", "c"};
    gguf_set_arr_str(context.get(), "texts", texts, 3);
    const ggml_context_ptr tensors(ggml_init({1U << 20U, nullptr, /*no_alloc=*/false}));
    for (const ggml_type type : all_types()) {
        ggml_tensor* tensor = ggml_new_tensor_2d(tensors.get(), type, ggml_blck_size(type), 3);
        std::memset(tensor->data, 1, ggml_nbytes(tensor));
        ggml_set_name(tensor, ggml_type_name(type));
        gguf_add_tensor(context.get(), tensor);
    }
    ASSERT_TRUE(gguf_write_to_file(context.get(), dir.file("a.gguf").c_str(), false));
    expect_same(dir.file("a.gguf"));
}

TEST(AgainstGgml, WritingAFileAgainGivesTheSameBytes) {
    const TempDir dir;
    gguf::write(dir.file("a.gguf"), one_of_each(), every_type_and_rank());
    const gguf::File file = gguf::File::open(dir.file("a.gguf"));
    std::vector<gguf::TensorToWrite> tensors;
    for (const gguf::TensorInfo& tensor : file.tensors()) {
        tensors.push_back({tensor.name,
                           tensor.type,
                           {tensor.ne.begin(), tensor.ne.begin() + tensor.n_dims},
                           [&](const auto& sink) { sink(file.data(tensor)); }});
    }
    gguf::write(dir.file("b.gguf"), file.metadata(), tensors);
    EXPECT_TRUE(read_bytes(dir.file("a.gguf")) == read_bytes(dir.file("b.gguf")));
}

TEST(AgainstGgml, TrainedModelsMeanTheSameToBoth) {
    const char* shared = std::getenv("PLEAT_SHARED");
    const std::filesystem::path models =
        std::filesystem::path(shared != nullptr ? shared : PLEAT_SHARED_DEFAULT) / "models";
    if (!std::filesystem::is_directory(models)) {
        GTEST_SKIP() << "no directory " << models << "; set PLEAT_SHARED to where models/ is";
    }
    int n_models = 0;
    for (const auto& entry : std::filesystem::directory_iterator(models)) {
        if (entry.path().extension() != ".gguf") continue;
        expect_same(entry.path().string());
        ++n_models;
    }
    if (n_models == 0) GTEST_SKIP() << "no .gguf files in " << models;
}

}  // namespace
}  // namespace pleat
