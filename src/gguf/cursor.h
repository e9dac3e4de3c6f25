#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace pleat::gguf {

/// Reads a header front to back and never past its end. It knows what it is reading, so that every
/// message begins with the file and the key or tensor: "tiny.gguf: key general.name ...".
/// Borrows `path` and `bytes`.
class Cursor {
  public:
    Cursor(std::string_view path, std::span<const std::byte> bytes) : path_(path), bytes_(bytes) {}

    uint64_t offset() const { return offset_; }
    uint64_t left() const { return bytes_.size() - offset_; }

    /// What follows is the `index`-th (from 0) of `count` things of this kind, not yet named.
    void enter(std::string_view kind, uint64_t index, uint64_t count);
    /// The name of the thing entered; must live as long as it is the current one.
    void set_name(std::string_view name) { name_ = name; }
    std::string_view name() const { return name_; }

    /// A little-endian number at any address. Throws Error when the file ends before it.
    template <typename T>
    T number(std::string_view what) {
        static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
        T value;
        std::memcpy(&value, take(sizeof(T), what), sizeof(T));
        return value;
    }

    /// Fills `out` with little-endian numbers.
    template <typename T>
    void numbers(std::span<T> out, std::string_view what) {
        const std::byte* source = take(out.size_bytes(), what);
        if (!out.empty()) std::memcpy(out.data(), source, out.size_bytes());
    }

    /// A length of 64 bits and that many bytes, borrowed from the file.
    std::string_view string(std::string_view what);

    /// Throws Error "<file>: <key or tensor> <message>".
    template <typename... Args>
    [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
        throw Error(subject() + fmt::format(format, std::forward<Args>(args)...));
    }

  private:
    const std::byte* take(uint64_t size, std::string_view what);
    std::string subject() const;

    std::string_view path_;
    std::span<const std::byte> bytes_;
    uint64_t offset_ = 0;
    std::string_view kind_ = "header";
    std::string_view name_;
    uint64_t index_ = 0;
    uint64_t count_ = 0;
};

}  // namespace pleat::gguf
