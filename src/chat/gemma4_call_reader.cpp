#include "chat/gemma4_call_reader.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "chat/json_escape.h"
#include "chat/json_scanner.h"

namespace pleat {
namespace {

constexpr std::string_view call_start = "call:";
constexpr std::string_view call_end = "<tool_call|>";
constexpr std::string_view quote = "<|\"|>";
constexpr size_t max_bare = 256;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Gemma4CallReader : public CallReader {
  public:
    explicit Gemma4CallReader(const ChatSyntax& syntax) : CallReader(syntax) {}

    Status feed(char c) override {
        switch (part_) {
            case Part::head:
                if (held_.empty() && is_space(c)) return Status::more;
                return literal(c, call_start, Part::name);
            case Part::name:
                return name(c);
            case Part::key_or_end:
                if (c == '}') return closed('{');
                [[fallthrough]];
            case Part::key:
                return key(c);
            case Part::colon:
                if (is_space(c)) return Status::more;
                if (c != ':') return Status::bad;
                arguments_ += ": ";
                return enter(Part::value);
            case Part::value_or_end:
                if (c == ']') return closed('[');
                [[fallthrough]];
            case Part::value:
                return value(c);
            case Part::bare_key:
            case Part::bare_value:
                return bare(c);
            case Part::opening_quote:
                return opening_quote(c);
            case Part::marked_text:
                return marked_text(c);
            case Part::json_text:
                return json_text(c);
            case Part::separator:
                return separator(c);
            case Part::close:
                if (held_.empty() && is_space(c)) return Status::more;
                return literal(c, call_end, Part::close);
        }
        return Status::bad;
    }

    bool whole() const override { return part_ == Part::close; }

  private:
    enum class Part : uint8_t {
        head,
        name,
        key_or_end,
        key,
        bare_key,
        colon,
        value_or_end,
        value,
        bare_value,
        opening_quote,
        marked_text,
        json_text,
        separator,
        close,
    };

    Status enter(Part part) {
        held_.clear();
        part_ = part;
        return Status::more;
    }

    Status literal(char c, std::string_view text, Part next) {
        held_ += c;
        if (!text.starts_with(held_)) return Status::bad;
        if (held_.size() < text.size()) return Status::more;
        if (part_ == next) return Status::done;
        return enter(next);
    }

    Status name(char c) {
        if (c == '{') return set_name(held_) ? opened('{') : Status::bad;
        return letter(c);
    }

    Status letter(char c) {
        if (static_cast<unsigned char>(c) < 0x20 || c == '<' || held_.size() >= max_bare) {
            return Status::bad;
        }
        held_ += c;
        return Status::more;
    }

    Status opened(char bracket) {
        if (open_.size() >= JsonScanner::max_depth) return Status::bad;
        open_.push_back(bracket);
        arguments_ += bracket;
        return enter(bracket == '{' ? Part::key_or_end : Part::value_or_end);
    }

    Status closed(char bracket) {
        if (open_.back() != bracket) return Status::bad;
        open_.pop_back();
        arguments_ += bracket == '{' ? '}' : ']';
        return enter(open_.empty() ? Part::close : Part::separator);
    }

    /// A key or value has ended.
    Status ended() { return enter(is_key_ ? Part::colon : Part::separator); }

    Status key(char c) {
        if (is_space(c)) return Status::more;
        is_key_ = true;
        if (c == '"') return begin_json_text();
        enter(c == '<' ? Part::opening_quote : Part::bare_key);
        return c == '<' ? opening_quote(c) : bare(c);
    }

    Status value(char c) {
        if (is_space(c)) return Status::more;
        is_key_ = false;
        if (c == '{' || c == '[') return opened(c);
        if (c == '"') return begin_json_text();
        enter(c == '<' ? Part::opening_quote : Part::bare_value);
        return c == '<' ? opening_quote(c) : bare(c);
    }

    Status bare(char c) {
        const bool ends = is_key_ ? c == ':' : c == ',' || c == '}' || c == ']' || is_space(c);
        if (!ends) return letter(c);
        while (!held_.empty() && is_space(held_.back())) held_.pop_back();
        if (is_key_) {
            if (held_.empty()) return Status::bad;
            arguments_ += json_quoted(held_);
        } else {
            if (held_ == "None") held_ = "null";
            if (held_ == "True") held_ = "true";
            if (held_ == "False") held_ = "false";
            if (!nlohmann::json::accept(held_)) return Status::bad;
            arguments_ += held_;
        }
        ended();
        return feed(c);
    }

    Status opening_quote(char c) {
        held_ += c;
        if (!quote.starts_with(held_)) return Status::bad;
        if (held_.size() < quote.size()) return Status::more;
        arguments_ += '"';
        return enter(Part::marked_text);
    }

    Status marked_text(char c) {
        held_ += c;
        if (held_ == quote) {
            arguments_ += '"';
            return ended();
        }
        while (!quote.starts_with(held_)) {
            append_escaped(arguments_, held_.front());
            held_.erase(0, 1);
        }
        return Status::more;
    }

    Status begin_json_text() {
        scanner_ = {};
        enter(Part::json_text);
        return json_text('"');
    }

    Status json_text(char c) {
        const JsonScanner::Status status = scanner_.feed(c);
        if (status == JsonScanner::Status::bad) return Status::bad;
        arguments_ += c;
        return status == JsonScanner::Status::done ? ended() : Status::more;
    }

    Status separator(char c) {
        if (is_space(c)) return Status::more;
        if (c == '}') return closed('{');
        if (c == ']') return closed('[');
        if (c != ',') return Status::bad;
        arguments_ += ", ";
        return enter(open_.back() == '{' ? Part::key : Part::value);
    }

    Part part_ = Part::head;
    std::string held_;
    std::vector<char> open_;
    bool is_key_ = false;
    JsonScanner scanner_;
};

}  // namespace

std::unique_ptr<CallReader> make_gemma4_call_reader(const ChatSyntax& syntax) {
    return std::make_unique<Gemma4CallReader>(syntax);
}

}  // namespace pleat
