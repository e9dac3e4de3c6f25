#include "plan/grammar.h"

#include <array>
#include <charconv>

#include "plan/message.h"

namespace pleat {
namespace {

constexpr std::string_view block_rule = "write a block as i,j or i-j or (i,j), then xN if wanted";
constexpr std::string_view item_rule = "write an item as n, a..b, a.., ..b or ..";
constexpr std::string_view mark_rule = "marks are -attn, -ffn, scale=F and qk=F";

/// `a..b` where a block should be: the reader counts inclusively, blocks do not.
[[noreturn]] void fail_inclusive_block(Scanner& in, size_t at, int64_t first) {
    const std::optional<int64_t> last = in.number();
    if (!last || *last < first) {
        fail_at(in.place(at), fmt::format("{}..{}", first, last ? fmt::to_string(*last) : ""),
                "is not a block; blocks are half-open, so write a,b+1 for layers a to b");
    }
    fail_at(in.place(at), fmt::format("{}..{}", first, *last),
            "is not a block; blocks are half-open, so write {},{} for layers {} to {}", first,
            *last + 1, first, *last);
}

RepeatBlock read_block(Scanner& in) {
    RepeatBlock block;
    const size_t at = in.offset();
    block.place = in.place(at);
    if (in.at_end() || in.next_is(";")) {
        fail_at(block.place, "an empty block", "is not allowed; put ; only between blocks");
    }
    const bool parenthesis = in.take("(");
    const std::optional<int64_t> begin = in.number();
    if (!begin) in.fail_here("in a block", block_rule);
    if (in.take("..")) fail_inclusive_block(in, at, *begin);
    if (!in.take(",") && (parenthesis || !in.take("-"))) in.fail_here("in a block", block_rule);
    const std::optional<int64_t> end = in.number();
    if (!end) in.fail_here("in a block", block_rule);
    if (parenthesis && !in.take(")")) in.fail_here("in a block", block_rule);
    block.begin = *begin;
    block.end = *end;
    if (in.take("x")) {
        const std::optional<int64_t> traversals = in.number();
        if (!traversals) in.fail_here("after x", "write xN for N traversals in all");
        block.traversals = *traversals;
        if (block.traversals == 0) {
            fail_at(block.place, fmt::format("block {}", print_block(block)),
                    "has no traversal; xN counts all of them, so N >= 1 (x1 changes nothing)");
        }
    }
    return block;
}

/// The value of scale= or qk=.
float read_factor(Scanner& in, std::string_view key) {
    const size_t at = in.offset();
    const std::string_view word = in.word();
    if (word.empty()) in.fail_here(fmt::format("after {}=", key), "write a number >= 0");
    const std::string shown =
        fmt::format("{}={}{}", key, word.substr(0, 40), word.size() > 40 ? "..." : "");
    float value = 0.0F;
    // from_chars would take "inf" and "nan" too.
    const bool plain = word.find_first_not_of("0123456789.eE+-") == std::string_view::npos;
    const auto [end, code] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (plain && code == std::errc::result_out_of_range) {
        fail_at(in.place(at), shown,
                "does not fit into a 32-bit float; factors are finite and >= 0");
    }
    if (!plain || word.front() == '-' || code != std::errc() || end != word.data() + word.size()) {
        fail_at(in.place(at), shown,
                "is not a factor; factors are finite and >= 0, for example 0.7");
    }
    return value;
}

Marks read_marks(Scanner& in) {
    constexpr std::array<std::string_view, 4> keys = {"-attn", "-ffn", "scale", "qk"};
    Marks marks;
    std::array<bool, keys.size()> seen = {};
    do {
        const size_t at = in.offset();
        size_t key = 0;
        while (key < keys.size() && !in.take(keys[key])) ++key;
        if (key == keys.size()) {
            const std::string word(in.word().substr(0, 40));
            if (word.empty()) in.fail_here("in marks", mark_rule);
            fail_at(in.place(at), fmt::format("mark {}", word), "is not known; {}", mark_rule);
        }
        if (seen[key]) {
            fail_at(in.place(at), fmt::format("mark {}", keys[key]),
                    "comes twice; each mark may come once");
        }
        seen[key] = true;
        switch (key) {
            case 0:
                marks.attention = false;
                continue;
            case 1:
                marks.ffn = false;
                continue;
            default:
                break;
        }
        if (!in.take("=")) in.fail_here("in marks", mark_rule);
        (key == 2 ? marks.scale : marks.qk_scale) = read_factor(in, keys[key]);
    } while (in.take(","));
    if (!in.take("]")) in.fail_here("in marks", "put , between marks and ] after the last");
    if (in.next_is("[")) {
        in.fail_here("after ]", "an item has one group of marks; put , between the marks");
    }
    return marks;
}

LayerItem read_item(Scanner& in) {
    LayerItem item;
    const size_t at = in.offset();
    item.place = in.place(at);
    if (in.at_end() || in.next_is(",")) {
        fail_at(item.place, "an empty item", "is not allowed; put , only between items");
    }
    item.first = in.number();
    if (in.take("..")) {
        item.last = in.number();
        return item;
    }
    if (!item.first) in.fail_here("in a list of layers", item_rule);
    item.last = item.first;
    if (in.take("-")) {
        const std::optional<int64_t> last = in.number();
        if (!last) in.fail_here("in a list of layers", item_rule);
        fail_at(item.place, fmt::format("{}-{}", *item.first, *last),
                "is not a range here, because a dash is half-open in blocks to repeat; write "
                "{}..{} for layers {} to {}, both included",
                *item.first, *last, *item.first, *last);
    }
    return item;
}

std::string print_number(const std::optional<int64_t>& number) {
    return number ? fmt::to_string(*number) : std::string();
}

/// The shortest decimal that reads back as the same float, in every locale.
std::string print_factor(float value) {
    std::array<char, 32> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
    return std::string(buffer.data(), end);
}

}  // namespace

void read_blocks(Scanner& in, std::vector<RepeatBlock>& blocks) {
    in.take("blocks:");
    do {
        blocks.push_back(read_block(in));
    } while (in.take(";"));
    if (!in.at_end()) {
        in.fail_here(fmt::format("after block {}", print_block(blocks.back())),
                     "put ; between blocks");
    }
}

void read_path(Scanner& in, std::vector<LayerItem>& items) {
    in.take("layers:");
    do {
        LayerItem item = read_item(in);
        if (in.take("[")) item.marks = read_marks(in);
        items.push_back(std::move(item));
    } while (in.take(","));
    if (!in.at_end()) {
        in.fail_here(fmt::format("after item {}", print_item(items.back())), "put , between items");
    }
}

void read_set(Scanner& in, std::vector<LayerItem>& items) {
    do {
        items.push_back(read_item(in));
        if (in.next_is("[")) {
            in.fail_here(fmt::format("after item {}", print_item(items.back())),
                         "only --layers takes marks in brackets");
        }
    } while (in.take(","));
    if (!in.at_end()) {
        in.fail_here(fmt::format("after item {}", print_item(items.back())), "put , between items");
    }
}

std::string print_block(const RepeatBlock& block) {
    std::string out = fmt::format("{},{}", block.begin, block.end);
    if (block.traversals != 2) out += fmt::format("x{}", block.traversals);
    return out;
}

std::string print_item(const LayerItem& item) {
    std::string out = print_number(item.first);
    if (!item.first || item.last != item.first) out += ".." + print_number(item.last);
    return out + print_marks(item.marks);
}

std::string print_marks(const Marks& marks) {
    std::string out;
    const auto add = [&](const std::string& mark) { out += (out.empty() ? "[" : ",") + mark; };
    if (!marks.attention) add("-attn");
    if (!marks.ffn) add("-ffn");
    if (marks.scale != 1.0F) add("scale=" + print_factor(marks.scale));
    if (marks.qk_scale != 1.0F) add("qk=" + print_factor(marks.qk_scale));
    return out.empty() ? out : out + "]";
}

}  // namespace pleat
