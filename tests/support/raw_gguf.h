#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pleat {

template <typename T>
std::string bytes_of(T value) {
    std::string out(sizeof(T), '\0');
    std::memcpy(out.data(), &value, sizeof(T));
    return out;
}

/// A string of the format: its bytes, after a length that may be a lie.
struct RawString {
    std::string text;
    std::optional<uint64_t> length;

    RawString(const char* t) : text(t) {}             // NOLINT(google-explicit-constructor)
    RawString(std::string t) : text(std::move(t)) {}  // NOLINT(google-explicit-constructor)
    RawString(std::string t, uint64_t l) : text(std::move(t)), length(l) {}
    std::string bytes() const { return bytes_of(length.value_or(text.size())) + text; }
};

struct RawKey {
    RawString name;
    uint32_t type = 0;  ///< the format's number
    std::string value;  ///< as stored, without the type
};

struct RawTensor {
    RawString name;
    std::vector<uint64_t> ne;
    uint32_t type = 0;  ///< ggml's number
    uint64_t offset = 0;
    std::optional<uint32_t> n_dims;  ///< else as many as `ne` has
};

/// A GGUF file from its parts, none of which has to make sense. What is not set is derived.
struct RawGguf {
    std::string magic = "GGUF";
    uint32_t version = 3;
    std::optional<uint64_t> n_tensors;
    std::optional<uint64_t> n_keys;
    std::vector<RawKey> keys;
    std::vector<RawTensor> tensors;
    uint64_t alignment = 32;  ///< of the data's start
    std::string data;
    std::optional<size_t> cut_at;        ///< the file ends there
    std::optional<std::string> instead;  ///< these bytes are the file

    RawKey& key(std::string_view name) { return named(keys, name); }
    RawTensor& tensor(std::string_view name) { return named(tensors, name); }

    std::string bytes() const {
        std::string out;
        write(out, nullptr);
        return out;
    }

    /// Where one thing ends and the next begins: every field of header, keys and tensors.
    std::vector<size_t> boundaries() const {
        std::vector<size_t> found;
        std::string out;
        write(out, &found);
        return found;
    }

  private:
    template <typename T>
    static T& named(std::vector<T>& all, std::string_view name) {
        for (T& one : all) {
            if (one.name.text == name) return one;
        }
        return all.at(all.size());  // throws: the test asks for what is not there
    }

    void write(std::string& out, std::vector<size_t>* boundaries) const {
        const auto put = [&](const std::string& field) {
            if (boundaries != nullptr) boundaries->push_back(out.size());
            out += field;
        };
        put(magic);
        put(bytes_of(version));
        put(bytes_of(n_tensors.value_or(tensors.size())));
        put(bytes_of(n_keys.value_or(keys.size())));
        for (const RawKey& k : keys) {
            put(k.name.bytes());
            put(bytes_of(k.type));
            put(k.value);
        }
        for (const RawTensor& t : tensors) {
            put(t.name.bytes());
            put(bytes_of(t.n_dims.value_or(static_cast<uint32_t>(t.ne.size()))));
            for (const uint64_t n : t.ne) put(bytes_of(n));
            put(bytes_of(t.type));
            put(bytes_of(t.offset));
        }
        if (!tensors.empty() && alignment != 0) {
            put(std::string((alignment - out.size() % alignment) % alignment, '\0'));
        }
        put(data);
        if (cut_at) out.resize(*cut_at);
        if (instead) out = *instead;
    }
};

// Keys of a type, with their numbers in the format.
inline RawKey raw_u8(RawString name, uint8_t v) { return {std::move(name), 0, bytes_of(v)}; }
inline RawKey raw_u16(RawString name, uint16_t v) { return {std::move(name), 2, bytes_of(v)}; }
inline RawKey raw_u32(RawString name, uint32_t v) { return {std::move(name), 4, bytes_of(v)}; }
inline RawKey raw_i32(RawString name, int32_t v) { return {std::move(name), 5, bytes_of(v)}; }
inline RawKey raw_f32(RawString name, float v) { return {std::move(name), 6, bytes_of(v)}; }
inline RawKey raw_bool(RawString name, uint8_t v) { return {std::move(name), 7, bytes_of(v)}; }
inline RawKey raw_u64(RawString name, uint64_t v) { return {std::move(name), 10, bytes_of(v)}; }
inline RawKey raw_string(RawString name, const RawString& v) {
    return {std::move(name), 8, v.bytes()};
}
/// `entries` are the bytes behind the length.
inline RawKey raw_array(RawString name, uint32_t type, uint64_t count, const std::string& entries) {
    return {std::move(name), 9, bytes_of(type) + bytes_of(count) + entries};
}

/// A small valid file with a bit of everything: a string, numbers, a bool, arrays, a quantised and
/// two F32 tensors. Its last tensor is not padded.
inline RawGguf tiny_raw_gguf() {
    RawGguf file;
    file.keys = {
        raw_string("general.architecture", "llama"),
        raw_u32("general.alignment", 32),
        raw_u32("llama.block_count", 1),
        raw_f32("llama.rope.freq_base", 10000.0F),
        raw_bool("tokenizer.ggml.add_bos_token", 1),
        raw_array(
            "tokenizer.ggml.tokens", 8, 3,
            RawString("a").bytes() + RawString("").bytes() + RawString("\xe2\x96\x81").bytes()),
        raw_array("tokenizer.ggml.token_type", 5, 3,
                  bytes_of(int32_t{1}) + bytes_of(int32_t{-1}) + bytes_of(int32_t{3})),
        raw_array("test.flags", 7, 2, std::string("\0\1", 2)),
        raw_u64("test.big", UINT64_MAX),
    };
    constexpr uint32_t f32 = 0;
    constexpr uint32_t q8_0 = 8;  // 34 bytes for 32 elements
    file.tensors = {
        {"token_embd.weight", {32, 3}, q8_0, 0, {}},         // 102 bytes, to 128 with padding
        {"blk.0.attn_norm.weight", {32}, f32, 128, {}},      // 128 bytes
        {"output_norm.weight", {5, 1, 1, 1}, f32, 256, {}},  // 20 bytes
    };
    file.data = std::string(256 + 20, '\x11');
    return file;
}

}  // namespace pleat
