#include "gguf/cursor.h"

#include <bit>

#include "gguf/rules.h"

namespace pleat::gguf {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they are stored");

void Cursor::enter(std::string_view kind, uint64_t index, uint64_t count) {
    kind_ = kind;
    name_ = {};
    index_ = index;
    count_ = count;
}

std::string_view Cursor::string(std::string_view what) {
    const auto size = number<uint64_t>(what);
    return {reinterpret_cast<const char*>(take(size, what)), size};
}

const std::byte* Cursor::take(uint64_t size, std::string_view what) {
    if (size > left()) {
        fail("is cut off: its {} needs {} bytes at byte {}, the file has {} left", what, size,
             offset_, left());
    }
    const std::byte* found = bytes_.data() + offset_;
    offset_ += size;
    return found;
}

std::string Cursor::subject() const {
    if (!name_.empty()) return fmt::format("{}: {} {} ", path_, kind_, escaped(name_));
    if (count_ != 0) return fmt::format("{}: {} {} of {} ", path_, kind_, index_ + 1, count_);
    return fmt::format("{}: {} ", path_, kind_);
}

}  // namespace pleat::gguf
