#include "chat/json_scanner.h"

#include <string_view>

namespace pleat {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

int hex(char c) {
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

using Status = JsonScanner::Status;

Status JsonScanner::feed(char c) {
    if (expect_ == Expect::inside) return inside(c);
    if (is_space(c)) return Status::more;
    return between(c);
}

Status JsonScanner::between(char c) {
    switch (expect_) {
        case Expect::value_or_end:
            if (c == ']') return close('[');
            return begin_value(c);
        case Expect::value:
            return begin_value(c);
        case Expect::key_or_end:
            if (c == '}') return close('{');
            [[fallthrough]];
        case Expect::key:
            if (c != '"') return Status::bad;
            is_key_ = true;
            return enter(Part::string);
        case Expect::colon:
            if (c != ':') return Status::bad;
            expect_ = Expect::value;
            return Status::more;
        case Expect::separator:
            if (c == '}') return close('{');
            if (c == ']') return close('[');
            if (c != ',' || open_.empty()) return Status::bad;
            expect_ = open_.back() == '{' ? Expect::key : Expect::value;
            return Status::more;
        case Expect::inside:
            break;
    }
    return Status::bad;
}

Status JsonScanner::enter(Part part) {
    expect_ = Expect::inside;
    part_ = part;
    return Status::more;
}

Status JsonScanner::begin_value(char c) {
    is_key_ = false;
    switch (c) {
        case '{':
        case '[':
            return open(c);
        case '"':
            return enter(Part::string);
        case '-':
            return enter(Part::minus);
        case '0':
            return enter(Part::zero);
        case 't':
            literal_ = "rue";
            return enter(Part::literal);
        case 'f':
            literal_ = "alse";
            return enter(Part::literal);
        case 'n':
            literal_ = "ull";
            return enter(Part::literal);
        default:
            return is_digit(c) ? enter(Part::integer) : Status::bad;
    }
}

Status JsonScanner::open(char bracket) {
    if (open_.size() >= max_depth) return Status::bad;
    open_.push_back(bracket);
    expect_ = bracket == '{' ? Expect::key_or_end : Expect::value_or_end;
    return Status::more;
}

Status JsonScanner::close(char bracket) {
    if (open_.empty() || open_.back() != bracket) return Status::bad;
    open_.pop_back();
    return value_ended();
}

Status JsonScanner::value_ended() {
    expect_ = Expect::separator;
    return open_.empty() ? Status::done : Status::more;
}

Status JsonScanner::inside(char c) {
    switch (part_) {
        case Part::string:
            if (static_cast<unsigned char>(c) < 0x20) return Status::bad;
            if (c == '\\') return enter(Part::escape);
            if (c != '"') return Status::more;
            if (!is_key_) return value_ended();
            expect_ = Expect::colon;
            return Status::more;
        case Part::escape:
            if (c == 'u') {
                digits_ = 0;
                code_ = 0;
                low_ = false;
                return enter(Part::unicode);
            }
            if (std::string_view("\"\\/bfnrt").find(c) == std::string_view::npos) {
                return Status::bad;
            }
            return enter(Part::string);
        case Part::unicode:
            return unicode(c);
        case Part::low_surrogate:
            return c == '\\' ? enter(Part::low_surrogate_u) : Status::bad;
        case Part::low_surrogate_u:
            if (c != 'u') return Status::bad;
            digits_ = 0;
            code_ = 0;
            low_ = true;
            return enter(Part::unicode);
        case Part::literal:
            if (c != *literal_) return Status::bad;
            return *++literal_ == '\0' ? value_ended() : Status::more;
        default:
            return number(c);
    }
}

Status JsonScanner::unicode(char c) {
    const int digit = hex(c);
    if (digit < 0) return Status::bad;
    code_ = code_ * 16 + static_cast<unsigned>(digit);
    if (++digits_ < 4) return Status::more;
    const bool high = code_ >= 0xD800 && code_ < 0xDC00;
    const bool low = code_ >= 0xDC00 && code_ < 0xE000;
    if (low != low_) return Status::bad;
    return enter(high ? Part::low_surrogate : Part::string);
}

Status JsonScanner::number(char c) {
    const bool digit = is_digit(c);
    const bool e = c == 'e' || c == 'E';
    switch (part_) {
        case Part::minus:
            if (!digit) return Status::bad;
            return enter(c == '0' ? Part::zero : Part::integer);
        case Part::zero:
        case Part::integer:
            if (digit) return part_ == Part::integer ? Status::more : Status::bad;
            if (c == '.') return enter(Part::point);
            if (e) return enter(Part::exponent);
            break;
        case Part::point:
            return digit ? enter(Part::fraction) : Status::bad;
        case Part::fraction:
            if (digit) return Status::more;
            if (e) return enter(Part::exponent);
            break;
        case Part::exponent:
            if (c == '+' || c == '-') return enter(Part::exponent_sign);
            [[fallthrough]];
        case Part::exponent_sign:
            return digit ? enter(Part::exponent_digits) : Status::bad;
        case Part::exponent_digits:
            if (digit) return Status::more;
            break;
        default:
            return Status::bad;
    }
    // The number ended before this byte.
    if (open_.empty()) return Status::bad;
    expect_ = Expect::separator;
    return feed(c);
}

}  // namespace pleat
