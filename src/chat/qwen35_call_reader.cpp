#include "chat/qwen35_call_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "chat/json_escape.h"

namespace pleat {
namespace {

constexpr size_t max_name = 256;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

class Qwen35CallReader : public CallReader {
  public:
    Qwen35CallReader(const ChatSyntax& syntax, bool in_function)
        : CallReader(syntax),
          bare_(in_function),
          part_(in_function ? Part::name : Part::function) {}

    Status feed(char c) override {
        switch (part_) {
            case Part::function:
                return tag(c, {{"<function=", Part::name}});
            case Part::name:
                return name(c);
            case Part::parameters:
                return tag(c, {{"<parameter=", Part::key}, {"</function>", Part::end}});
            case Part::key:
                return key(c);
            case Part::value:
                return value(c);
            case Part::end:
                return tag(c, {{"</tool_call>", Part::end}});
        }
        return Status::bad;
    }

    bool whole() const override { return part_ == Part::end; }

  private:
    enum class Part : uint8_t { function, name, parameters, key, value, end };
    struct Tag {
        std::string_view text;
        Part next;
    };

    /// White space, then one of these.
    Status tag(char c, std::initializer_list<Tag> tags) {
        if (held_.empty() && is_space(c)) return Status::more;
        held_ += c;
        for (const Tag& tag : tags) {
            if (held_ == tag.text) return enter(tag.next);
            if (tag.text.starts_with(held_)) return Status::more;
        }
        return Status::bad;
    }

    Status enter(Part part) {
        held_.clear();
        if (part == Part::end) {
            if (part_ == Part::end) return Status::done;
            arguments_ += keys_.empty() ? "{}" : "}";
            part_ = part;
            return bare_ ? Status::done : Status::more;
        }
        part_ = part;
        return Status::more;
    }

    Status name(char c) {
        if (c == '>')
            return set_name(std::exchange(held_, {})) ? enter(Part::parameters) : Status::bad;
        return letter(c);
    }

    Status key(char c) {
        if (c != '>') return letter(c);
        if (held_.empty() || !keys_.insert(held_).second) return Status::bad;
        arguments_ += keys_.size() == 1 ? "{" : ", ";
        arguments_ += json_quoted(held_) + ": ";
        is_text_ = std::ranges::any_of(syntax_.text_parameters, [&](const auto& parameter) {
            return parameter.first == name_ && parameter.second == held_;
        });
        if (is_text_) arguments_ += '"';
        value_.clear();
        first_ = true;
        return enter(Part::value);
    }

    Status letter(char c) {
        if (static_cast<unsigned char>(c) < 0x20 || c == '<' || held_.size() >= max_name) {
            return Status::bad;
        }
        held_ += c;
        return Status::more;
    }

    /// held_ is what may belong to the end: a line break and a part of the tag.
    Status value(char c) {
        if (std::exchange(first_, false) && c == '\n') return Status::more;
        held_ += c;
        if (held_ == "\n</parameter>" || held_ == "</parameter>") return value_ended();
        while (!held_.empty() && !std::string_view("\n</parameter>").starts_with(held_) &&
               !std::string_view("</parameter>").starts_with(held_)) {
            if (is_text_) {
                append_escaped(arguments_, held_.front());
            } else {
                value_ += held_.front();
            }
            held_.erase(0, 1);
        }
        return Status::more;
    }

    Status value_ended() {
        if (is_text_) {
            arguments_ += '"';
        } else {
            arguments_ += nlohmann::json::accept(value_) ? value_ : json_quoted(value_);
        }
        return enter(Part::parameters);
    }

    const bool bare_;
    Part part_;
    std::string held_;
    std::set<std::string> keys_;
    std::string value_;
    bool is_text_ = false;
    bool first_ = true;  ///< of a value's bytes
};

}  // namespace

std::unique_ptr<CallReader> make_qwen35_call_reader(const ChatSyntax& syntax, bool in_function) {
    return std::make_unique<Qwen35CallReader>(syntax, in_function);
}

}  // namespace pleat
