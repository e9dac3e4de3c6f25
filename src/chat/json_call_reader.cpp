#include "chat/json_call_reader.h"

#include <nlohmann/json.hpp>

#include "chat/json_scanner.h"

namespace pleat {
namespace {

using Expect = JsonScanner::Expect;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// The value of a JSON string that a scanner has taken.
std::string string_value(std::string_view text) {
    return nlohmann::json::parse(text, nullptr, false).get<std::string>();
}

class JsonCallReader : public CallReader {
  public:
    JsonCallReader(const ChatSyntax& syntax, std::string_view close)
        : CallReader(syntax), close_(close) {}

    Status feed(char c) override { return object_ended_ ? after_object(c) : in_object(c); }
    bool whole() const override { return object_ended_; }

  private:
    Status in_object(char c) {
        if (text_.empty() && is_space(c)) return Status::more;
        if (text_.empty() && c != '{') return Status::bad;
        const Expect before = scanner_.expects();
        const size_t depth_before = scanner_.depth();
        const JsonScanner::Status status = scanner_.feed(c);
        if (status == JsonScanner::Status::bad) return Status::bad;
        text_ += c;
        if (depth_before == 1 && !is_space(c)) {
            if (before == Expect::key || before == Expect::key_or_end) key_at_ = text_.size() - 1;
            if (before == Expect::value && !value_began(c)) return Status::bad;
        }
        if (scanner_.depth() == 1) {
            const bool was_inside = before == Expect::inside || depth_before == 2;
            if (was_inside && scanner_.expects() == Expect::colon) {
                key_ = string_value(std::string_view(text_).substr(key_at_));
            }
            // Numbers end one byte late, but none of them is looked at.
            if (was_inside && scanner_.expects() == Expect::separator && !value_ended()) {
                return Status::bad;
            }
        }
        pass_on();
        if (status == JsonScanner::Status::more) return Status::more;
        return ended();
    }

    bool is_arguments() const { return key_ == "arguments" || key_ == "parameters"; }

    bool value_began(char c) {
        value_at_ = text_.size() - 1;
        if (key_ == "name") return c == '"' && name_.empty();
        if (!is_arguments()) return true;
        if (have_arguments_) return false;
        have_arguments_ = true;
        passing_ = c == '{';
        passed_ = value_at_;
        return c == '{' || c == '"';
    }

    bool value_ended() {
        const std::string_view value = std::string_view(text_).substr(value_at_);
        if (key_ == "name") return set_name(string_value(value));
        if (!is_arguments()) return true;
        if (!passing_) {
            arguments_ = string_value(value);
            return nlohmann::json::parse(arguments_, nullptr, false).is_object();
        }
        arguments_.append(text_, passed_);
        passing_ = false;
        return true;
    }

    void pass_on() {
        if (!passing_ || name_.empty()) return;
        arguments_.append(text_, passed_);
        passed_ = text_.size();
    }

    Status ended() {
        if (name_.empty()) return Status::bad;
        if (!have_arguments_) arguments_ = "{}";
        object_ended_ = true;
        return close_.empty() ? Status::done : Status::more;
    }

    Status after_object(char c) {
        if (matched_ == 0 && is_space(c)) return Status::more;
        if (c != close_[matched_]) return Status::bad;
        return ++matched_ == close_.size() ? Status::done : Status::more;
    }

    std::string_view close_;
    JsonScanner scanner_;
    std::string text_;  ///< of the object
    std::string key_;
    size_t key_at_ = 0;
    size_t value_at_ = 0;
    size_t passed_ = 0;     ///< of text_, while passing_
    bool passing_ = false;  ///< inside of the arguments
    bool have_arguments_ = false;
    bool object_ended_ = false;
    size_t matched_ = 0;  ///< of close_
};

}  // namespace

std::unique_ptr<CallReader> make_json_call_reader(const ChatSyntax& syntax,
                                                  std::string_view close) {
    return std::make_unique<JsonCallReader>(syntax, close);
}

}  // namespace pleat
