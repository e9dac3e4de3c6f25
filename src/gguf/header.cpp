#include "gguf/header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <unordered_set>
#include <utility>
#include <variant>

#include "base/checked.h"
#include "gguf/cursor.h"
#include "gguf/rules.h"

namespace pleat::gguf {
namespace {

// The fewest bytes that a key with its value, or a tensor's entry, can take.
constexpr uint64_t min_key_value_bytes = 8 + 1 + 4 + 1;
constexpr uint64_t min_tensor_bytes = 8 + 1 + 4 + 8 + 4 + 8;
// Reserved at once at most, however many a file claims: more memory only for what is there.
constexpr uint64_t max_reserve = 1U << 20U;
// A count gone wrong in a file of many GiB must not copy the weights into one "array".
constexpr uint64_t max_value_bytes = 1U << 30U;

uint32_t read_version(Cursor& cursor) {
    const auto version = cursor.number<uint32_t>("version");
    if (version == 2 || version == 3) return version;
    if (version == 1) {
        cursor.fail("has GGUF version 1, expected 2 or 3; convert the model again");
    }
    if (version != 0 && (version & 0xffffU) == 0) {
        cursor.fail(
            "has version {} when read little endian: a big-endian file, expected a "
            "little-endian one",
            version);
    }
    cursor.fail("has GGUF version {}, expected 2 or 3", version);
}

ValueType read_value_type(Cursor& cursor, std::string_view what) {
    const auto type = cursor.number<uint32_t>(what);
    if (type > static_cast<uint32_t>(ValueType::f64)) {
        cursor.fail("has {} {}, expected 0 to {}", what, type,
                    static_cast<uint32_t>(ValueType::f64));
    }
    return static_cast<ValueType>(type);
}

std::string read_string(Cursor& cursor, std::string_view what) {
    const std::string_view text = cursor.string(what);
    if (text.size() > max_value_bytes) {
        cursor.fail("has a string of {} bytes, expected at most {}", text.size(), max_value_bytes);
    }
    return std::string(text);
}

void check_array_size(const Cursor& cursor, uint64_t count, uint64_t min_entry_bytes) {
    if (count > cursor.left() / min_entry_bytes) {
        cursor.fail("is an array of {} entries of at least {} bytes, the file has {} bytes left",
                    count, min_entry_bytes, cursor.left());
    }
    if (count > max_value_bytes / min_entry_bytes) {
        cursor.fail("is an array of {} entries, expected at most {}", count,
                    max_value_bytes / min_entry_bytes);
    }
}

template <typename T>
std::vector<T> read_entries(Cursor& cursor, uint64_t count) {
    if constexpr (std::is_same_v<T, std::string>) {
        check_array_size(cursor, count, sizeof(uint64_t));
        std::vector<T> entries;
        entries.reserve(std::min(count, max_reserve));
        for (uint64_t i = 0; i < count; ++i) entries.push_back(read_string(cursor, "array entry"));
        return entries;
    } else {
        check_array_size(cursor, count, sizeof(T));
        std::vector<T> entries(count);
        cursor.numbers(std::span<T>(entries), "array");
        return entries;
    }
}

std::vector<uint8_t> read_booleans(Cursor& cursor, uint64_t count) {
    std::vector<uint8_t> entries = read_entries<uint8_t>(cursor, count);
    const auto bad = std::find_if(entries.begin(), entries.end(), [](uint8_t b) { return b > 1; });
    if (bad != entries.end()) {
        cursor.fail("has bool {} at index {} of its array, expected 0 or 1", *bad,
                    bad - entries.begin());
    }
    return entries;
}

Array read_array(Cursor& cursor) {
    Array array;
    array.type = read_value_type(cursor, "array type");
    const auto count = cursor.number<uint64_t>("array length");
    switch (array.type) {
        case ValueType::u8:
            array.items = read_entries<uint8_t>(cursor, count);
            break;
        case ValueType::i8:
            array.items = read_entries<int8_t>(cursor, count);
            break;
        case ValueType::u16:
            array.items = read_entries<uint16_t>(cursor, count);
            break;
        case ValueType::i16:
            array.items = read_entries<int16_t>(cursor, count);
            break;
        case ValueType::u32:
            array.items = read_entries<uint32_t>(cursor, count);
            break;
        case ValueType::i32:
            array.items = read_entries<int32_t>(cursor, count);
            break;
        case ValueType::f32:
            array.items = read_entries<float>(cursor, count);
            break;
        case ValueType::boolean:
            array.items = read_booleans(cursor, count);
            break;
        case ValueType::string:
            array.items = read_entries<std::string>(cursor, count);
            break;
        case ValueType::u64:
            array.items = read_entries<uint64_t>(cursor, count);
            break;
        case ValueType::i64:
            array.items = read_entries<int64_t>(cursor, count);
            break;
        case ValueType::f64:
            array.items = read_entries<double>(cursor, count);
            break;
        case ValueType::array:
            cursor.fail("is an array of arrays, which is not supported");
    }
    return array;
}

Value read_value(Cursor& cursor) {
    switch (read_value_type(cursor, "value type")) {
        case ValueType::u8:
            return cursor.number<uint8_t>("value");
        case ValueType::i8:
            return cursor.number<int8_t>("value");
        case ValueType::u16:
            return cursor.number<uint16_t>("value");
        case ValueType::i16:
            return cursor.number<int16_t>("value");
        case ValueType::u32:
            return cursor.number<uint32_t>("value");
        case ValueType::i32:
            return cursor.number<int32_t>("value");
        case ValueType::f32:
            return cursor.number<float>("value");
        case ValueType::u64:
            return cursor.number<uint64_t>("value");
        case ValueType::i64:
            return cursor.number<int64_t>("value");
        case ValueType::f64:
            return cursor.number<double>("value");
        case ValueType::string:
            return read_string(cursor, "string");
        case ValueType::array:
            return read_array(cursor);
        case ValueType::boolean:
            break;
    }
    const auto flag = cursor.number<uint8_t>("value");
    if (flag > 1) cursor.fail("has bool {}, expected 0 or 1", flag);
    return flag == 1;
}

void read_metadata(Cursor& cursor, uint64_t count, Header& header) {
    std::unordered_set<std::string_view> seen;  // of bytes in the file, which do not move
    for (uint64_t i = 0; i < count; ++i) {
        cursor.enter("key", i, count);
        const std::string_view key = cursor.string("name");
        if (const auto fault = key_fault(key)) cursor.fail("{}", *fault);
        cursor.set_name(key);
        if (!seen.insert(key).second) cursor.fail("comes twice, expected once");
        Value value = read_value(cursor);
        if (key == alignment_key) {
            if (const auto fault = alignment_fault(value)) cursor.fail("{}", *fault);
            header.alignment = std::get<uint32_t>(value);
        }
        header.metadata.push_back({std::string(key), std::move(value)});
    }
}

/// All but the place of its data; `offset` is as stored, from the start of the data.
TensorInfo read_tensor(Cursor& cursor, uint64_t alignment) {
    const std::string_view name = cursor.string("name");
    if (const auto fault = tensor_name_fault(name)) cursor.fail("{}", *fault);
    cursor.set_name(name);

    TensorInfo tensor;
    tensor.name = name;
    const auto n_dims = cursor.number<uint32_t>("number of dimensions");
    std::array<uint64_t, GGML_MAX_DIMS> ne{1, 1, 1, 1};
    if (n_dims < 1 || n_dims > ne.size()) {
        cursor.fail("has {} dimensions, expected 1 to {}", n_dims, ne.size());
    }
    const std::span<uint64_t> stored(ne.data(), n_dims);
    cursor.numbers(stored, "shape");
    const auto type = cursor.number<uint32_t>("type");
    if (const auto fault = tensor_type_fault(type)) cursor.fail("{}", *fault);
    tensor.type = static_cast<ggml_type>(type);
    if (const auto fault = shape_fault(tensor.type, stored, tensor.bytes)) {
        cursor.fail("{}", *fault);
    }
    tensor.n_dims = static_cast<int>(n_dims);
    std::copy(ne.begin(), ne.end(), tensor.ne.begin());
    tensor.offset = cursor.number<uint64_t>("offset");
    if (tensor.offset % alignment != 0) {
        cursor.fail("has its data at offset {}, expected a multiple of {} ({})", tensor.offset,
                    alignment, alignment_key);
    }
    return tensor;
}

void read_tensors(Cursor& cursor, uint64_t count, Header& header) {
    std::unordered_set<std::string_view> seen;
    for (uint64_t i = 0; i < count; ++i) {
        cursor.enter("tensor", i, count);
        const uint64_t name_at = cursor.offset();
        header.tensors.push_back(read_tensor(cursor, header.alignment));
        if (!seen.insert(cursor.name()).second) {
            cursor.fail("comes twice (again at byte {}), expected once", name_at);
        }
    }
}

/// Turns offsets into places in the file, and proves that each lies inside it.
void place_tensors(std::string_view path, Header& header, uint64_t header_bytes,
                   uint64_t file_bytes) {
    const uint64_t data_start = round_up(header_bytes, header.alignment);
    for (TensorInfo& tensor : header.tensors) {
        const auto begin = checked_add(data_start, tensor.offset);
        const auto end = begin ? checked_add(*begin, tensor.bytes) : std::nullopt;
        if (!end) {
            fail("{}: tensor {} has its data at offset {}, expected it inside the file of {} bytes",
                 path, escaped(tensor.name), tensor.offset, file_bytes);
        }
        if (*end > file_bytes) {
            fail(
                "{}: tensor {} is cut off: its {} bytes at byte {} need a file of {} bytes, this "
                "one has {}",
                path, escaped(tensor.name), tensor.bytes, *begin, *end, file_bytes);
        }
        tensor.offset = *begin;
    }
}

void check_overlap(std::string_view path, const std::vector<TensorInfo>& tensors) {
    std::vector<const TensorInfo*> by_offset;
    by_offset.reserve(tensors.size());
    for (const TensorInfo& tensor : tensors) by_offset.push_back(&tensor);
    std::sort(by_offset.begin(), by_offset.end(),
              [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
    for (size_t i = 1; i < by_offset.size(); ++i) {
        const TensorInfo& before = *by_offset[i - 1];
        const TensorInfo& here = *by_offset[i];
        if (here.offset < before.offset + before.bytes) {
            fail("{}: tensor {} at byte {} overlaps tensor {}, which ends at byte {}", path,
                 escaped(here.name), here.offset, escaped(before.name),
                 before.offset + before.bytes);
        }
    }
}

}  // namespace

Header parse_header(std::string_view path, std::span<const std::byte> bytes) {
    if (bytes.size() < magic.size() || std::memcmp(bytes.data(), magic.data(), magic.size()) != 0) {
        fail("{}: {}", path, describe_foreign_file(bytes));
    }
    Cursor cursor(path, bytes);
    cursor.number<uint32_t>("magic");

    Header header;
    header.version = read_version(cursor);
    header.alignment = default_alignment;
    const auto n_tensors = cursor.number<uint64_t>("number of tensors");
    const auto n_keys = cursor.number<uint64_t>("number of keys");
    if (n_keys > cursor.left() / min_key_value_bytes) {
        cursor.fail("claims {} keys, the {} bytes left hold at most {}", n_keys, cursor.left(),
                    cursor.left() / min_key_value_bytes);
    }
    if (n_tensors > cursor.left() / min_tensor_bytes) {
        cursor.fail("claims {} tensors, the {} bytes left hold at most {}", n_tensors,
                    cursor.left(), cursor.left() / min_tensor_bytes);
    }
    read_metadata(cursor, n_keys, header);
    read_tensors(cursor, n_tensors, header);
    place_tensors(path, header, cursor.offset(), bytes.size());
    check_overlap(path, header.tensors);
    return header;
}

}  // namespace pleat::gguf
