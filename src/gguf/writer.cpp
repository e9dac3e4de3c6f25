#include "gguf/writer.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <variant>

#include "base/checked.h"
#include "base/error.h"
#include "gguf/output_file.h"
#include "gguf/rules.h"

namespace pleat::gguf {
namespace {

constexpr uint32_t written_version = 3;

/// The header's bytes; it is small beside the data and is put together in memory.
class HeaderBytes {
  public:
    template <typename T>
    void number(T value) {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
        bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    }
    void raw(std::string_view text) { bytes_ += text; }
    void string(std::string_view text) {
        number<uint64_t>(text.size());
        raw(text);
    }

    void value(bool flag) { number<uint8_t>(flag ? 1 : 0); }
    void value(const std::string& text) { string(text); }
    void value(const Array& array) {
        number(static_cast<uint32_t>(array.type));
        number<uint64_t>(array.size());
        std::visit([&](const auto& items) { entries(items); }, array.items);
    }
    template <typename T>
    void value(T scalar) {
        number(scalar);
    }

    std::span<const std::byte> bytes() const { return std::as_bytes(std::span(bytes_)); }

  private:
    template <typename T>
    void entries(const std::vector<T>& items) {
        const auto raw_bytes = std::as_bytes(std::span(items));
        bytes_.append(reinterpret_cast<const char*>(raw_bytes.data()), raw_bytes.size());
    }
    void entries(const std::vector<std::string>& items) {
        for (const std::string& item : items) string(item);
    }

    std::string bytes_;
};

/// The element type that the vector's own type implies; `boolean` and `u8` share one.
ValueType element_type(const Array& array) {
    if (array.type == ValueType::boolean &&
        std::holds_alternative<std::vector<uint8_t>>(array.items)) {
        return ValueType::boolean;
    }
    constexpr std::array types{ValueType::u8,  ValueType::i8,  ValueType::u16, ValueType::i16,
                               ValueType::u32, ValueType::i32, ValueType::f32, ValueType::string,
                               ValueType::u64, ValueType::i64, ValueType::f64};
    static_assert(types.size() == std::variant_size_v<decltype(Array::items)>);
    return types.at(array.items.index());
}

void check_metadata(const std::string& path, const std::vector<KeyValue>& metadata) {
    std::unordered_set<std::string_view> seen;
    for (const auto& [key, value] : metadata) {
        if (const auto fault = key_fault(key)) fail("{}: key {} {}", path, escaped(key), *fault);
        if (!seen.insert(key).second) {
            fail("{}: key {} comes twice, expected once", path, escaped(key));
        }
        const auto* array = std::get_if<Array>(&value);
        if (array == nullptr) continue;
        if (array->type != element_type(*array)) {
            fail("{}: key {} is an array of type {} that holds {}", path, escaped(key),
                 type_name(array->type), type_name(element_type(*array)));
        }
        if (array->type == ValueType::boolean) {
            for (const uint8_t flag : std::get<std::vector<uint8_t>>(array->items)) {
                if (flag > 1) fail("{}: key {} has bool {}, expected 0 or 1", path, key, flag);
            }
        }
    }
}

uint64_t alignment_of(const std::string& path, const std::vector<KeyValue>& metadata) {
    const auto found = std::find_if(metadata.begin(), metadata.end(),
                                    [](const KeyValue& kv) { return kv.key == alignment_key; });
    if (found == metadata.end()) return default_alignment;
    if (const auto fault = alignment_fault(found->value)) {
        fail("{}: key {} {}", path, alignment_key, *fault);
    }
    return std::get<uint32_t>(found->value);
}

/// The size of each tensor's data, once all that the reader would refuse is ruled out.
std::vector<uint64_t> tensor_sizes(const std::string& path,
                                   const std::vector<TensorToWrite>& tensors) {
    std::vector<uint64_t> sizes;
    std::unordered_set<std::string_view> seen;
    for (const TensorToWrite& tensor : tensors) {
        const auto check = [&](const std::optional<std::string>& fault) {
            if (fault) fail("{}: tensor {} {}", path, escaped(tensor.name), *fault);
        };
        check(tensor_name_fault(tensor.name));
        if (!seen.insert(tensor.name).second) check("comes twice, expected once");
        check(tensor_type_fault(static_cast<uint32_t>(tensor.type)));
        // Negative numbers become ones of 2^63 and more, which are refused.
        const std::vector<uint64_t> ne(tensor.ne.begin(), tensor.ne.end());
        check(shape_fault(tensor.type, ne, sizes.emplace_back()));
        if (!tensor.write) check("has no data to write");
    }
    return sizes;
}

HeaderBytes header_bytes(const std::string& path, const std::vector<KeyValue>& metadata,
                         const std::vector<TensorToWrite>& tensors,
                         const std::vector<uint64_t>& sizes, uint64_t alignment) {
    HeaderBytes header;
    header.raw(magic);
    header.number(written_version);
    header.number<uint64_t>(tensors.size());
    header.number<uint64_t>(metadata.size());
    for (const auto& [key, value] : metadata) {
        header.string(key);
        header.number(static_cast<uint32_t>(type_of(value)));
        std::visit([&](const auto& v) { header.value(v); }, value);
    }
    uint64_t offset = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
        header.string(tensors[i].name);
        header.number(static_cast<uint32_t>(tensors[i].ne.size()));
        for (const int64_t n : tensors[i].ne) header.number(n);
        header.number(static_cast<uint32_t>(tensors[i].type));
        header.number(offset);
        const auto end = checked_add(offset, sizes[i]);
        if (!end || *end > std::numeric_limits<int64_t>::max()) {
            fail("{}: tensor {} ends past 2^63 bytes of data", path, escaped(tensors[i].name));
        }
        offset = round_up(*end, alignment);
    }
    return header;
}

void write_data(const std::string& path, const TensorToWrite& tensor, uint64_t size,
                OutputFile& file) {
    const uint64_t start = file.size();
    const auto sink = [&](std::span<const std::byte> piece) {
        if (piece.size() > size - (file.size() - start)) {
            fail("{}: tensor {} was given more than its {} bytes of data", path,
                 escaped(tensor.name), size);
        }
        file.write(piece);
    };
    tensor.write(sink);
    if (file.size() - start != size) {
        fail("{}: tensor {} was given {} bytes of data, expected {}", path, escaped(tensor.name),
             file.size() - start, size);
    }
}

}  // namespace

void write(const std::string& path, const std::vector<KeyValue>& metadata,
           const std::vector<TensorToWrite>& tensors) {
    check_metadata(path, metadata);
    const uint64_t alignment = alignment_of(path, metadata);
    const std::vector<uint64_t> sizes = tensor_sizes(path, tensors);
    const HeaderBytes header = header_bytes(path, metadata, tensors, sizes, alignment);

    OutputFile file(path);
    file.write(header.bytes());
    for (size_t i = 0; i < tensors.size(); ++i) {
        file.pad(alignment);
        write_data(path, tensors[i], sizes[i], file);
    }
    // As stock does: its reader takes the last tensor's padding for granted.
    file.pad(alignment);
    file.commit();
}

uint64_t written_bytes(const std::string& path, const std::vector<KeyValue>& metadata,
                       const std::vector<TensorToWrite>& tensors) {
    check_metadata(path, metadata);
    const uint64_t alignment = alignment_of(path, metadata);
    const std::vector<uint64_t> sizes = tensor_sizes(path, tensors);
    const HeaderBytes header = header_bytes(path, metadata, tensors, sizes, alignment);
    // header_bytes has proved that the sum of the sizes is no number too large.
    uint64_t total = round_up(header.bytes().size(), alignment);
    for (const uint64_t size : sizes) total += round_up(size, alignment);
    return total;
}

}  // namespace pleat::gguf
