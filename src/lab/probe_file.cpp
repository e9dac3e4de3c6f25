#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/mapped_file.h"
#include "lab/json_text.h"
#include "lab/partial_credit.h"
#include "lab/phrase.h"
#include "lab/probes.h"
#include "plan/message.h"

namespace pleat {
namespace {

using Type = JsonText::Type;

constexpr size_t shown = 60;
constexpr int32_t most_new_tokens = 1 << 20;
/// Beside one token a byte of the answer: for the end of its line, and for words around it in chat.
constexpr int32_t spare_tokens = 4;
constexpr int32_t spare_chat_tokens = 32;

std::string shortened(std::string_view text) { return escaped(text.substr(0, shown)); }

const JsonText& field(const JsonText& object, std::string_view key, const std::string& where) {
    const JsonText* const value = object.find(key);
    if (value == nullptr) fail("{}: the field {} is missing", where, key);
    return *value;
}

const std::string& text_of(const JsonText& value, std::string_view key, const std::string& where) {
    if (value.type != Type::text) fail("{}: the field {} is not a text", where, key);
    return value.text;
}

const std::string& text_field(const JsonText& object, std::string_view key,
                              const std::string& where) {
    const std::string& text = text_of(field(object, key, where), key, where);
    if (text.empty()) fail("{}: the field {} is empty", where, key);
    return text;
}

std::string optional_text(const JsonText& object, std::string_view key, const std::string& where) {
    const JsonText* const value = object.find(key);
    return value == nullptr ? std::string() : text_of(*value, key, where);
}

std::vector<ChatMessage> messages_of(const JsonText& value, const std::string& where) {
    std::vector<ChatMessage> messages;
    if (value.type != Type::array) fail("{}: the field messages is not a list", where);
    for (const JsonText& message : value.values) {
        const std::string place = fmt::format("{}, message {}", where, messages.size() + 1);
        if (message.type != Type::object) fail("{}: not an object with role and content", place);
        messages.push_back(
            {text_field(message, "role", place), text_field(message, "content", place)});
    }
    if (messages.empty()) fail("{}: the field messages is an empty list", where);
    return messages;
}

std::vector<std::string> options_of(const JsonText& value, const std::string& where) {
    std::vector<std::string> options;
    if (value.type != Type::array) fail("{}: the field options is not a list", where);
    for (const JsonText& option : value.values) {
        options.push_back(text_of(option, "options", where));
    }
    return options;
}

ReadingRule reading_of(const JsonText& object, std::string_view kind, const std::string& where) {
    const std::string name = optional_text(object, "reading", where);
    if (name.empty()) return kind == "arithmetic" ? ReadingRule::integer : ReadingRule::phrase;
    if (name == "phrase") return ReadingRule::phrase;
    if (name == "integer") return ReadingRule::integer;
    fail("{}: the field reading is \"{}\"; it is phrase or integer", where, shortened(name));
}

int32_t new_tokens_of(const JsonText& object, const Probe& probe, const std::string& where) {
    const JsonText* const value = object.find("max_new_tokens");
    if (value == nullptr) return usual_new_tokens(probe);
    int32_t n = 0;
    const std::string& digits = value->text;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), n);
    if (value->type != Type::number || read.ec != std::errc{} ||
        read.ptr != digits.data() + digits.size() || n < 1 || n > most_new_tokens) {
        fail("{}: the field max_new_tokens is not a whole number in 1..{}", where, most_new_tokens);
    }
    return n;
}

/// An answer that the rule could not read from a model that wrote it would count as wrong forever.
void check_answer(const Probe& probe, const std::string& where) {
    const std::string_view phrase = first_phrase(probe.answer).text;
    // A mark at its end belongs to the phrase as little in the answer as in what a model writes.
    const bool whole =
        !phrase.empty() &&
        probe.answer.find_first_not_of(
            " \t\r\n.!?", static_cast<size_t>(phrase.data() + phrase.size() -
                                              probe.answer.data())) == std::string::npos;
    if (!whole) {
        fail("{}: the answer \"{}\" is not one phrase on one line, so it could not be read", where,
             shortened(probe.answer));
    }
    const std::string_view digits = phrase.substr(phrase.starts_with('-') ? 1 : 0);
    if (probe.reading == ReadingRule::integer &&
        (!all_digits(digits) || digits.size() > max_digits)) {
        fail("{}: the answer \"{}\" is not an integer of at most {} digits", where,
             shortened(probe.answer), max_digits);
    }
    if (!probe.options.empty() && std::ranges::find(probe.options, phrase) == probe.options.end()) {
        fail("{}: the answer \"{}\" is not among the options", where, shortened(phrase));
    }
}

Probe line_probe(const JsonText& object, const std::string& where) {
    if (object.type != Type::object) {
        fail("{}: not an object with id, kind, prompt and answer", where);
    }
    Probe probe{.id = text_field(object, "id", where), .kind = text_field(object, "kind", where)};
    probe.sub = optional_text(object, "sub", where);
    probe.answer = text_field(object, "answer", where);
    const JsonText* const messages = object.find("messages");
    if (messages != nullptr) probe.messages = messages_of(*messages, where);
    const bool needs_prompt = messages == nullptr || object.find("prompt") != nullptr;
    if (needs_prompt) probe.prompt = text_field(object, "prompt", where);
    const JsonText* const options = object.find("options");
    if (options != nullptr) probe.options = options_of(*options, where);
    probe.reading = reading_of(object, probe.kind, where);
    probe.max_new_tokens = new_tokens_of(object, probe, where);
    check_answer(probe, where);
    return probe;
}

/// Ids name items in splits and reports, so that one that comes twice would mix two of them up.
class Ids {
  public:
    void add(const std::string& id, const std::string& where) {
        if (!seen_.insert(id).second) fail("{}: the id {} comes twice", where, shortened(id));
    }

  private:
    std::unordered_set<std::string> seen_;
};

std::vector<Probe> parse_lines(std::string_view text, const std::string& path) {
    std::vector<Probe> probes;
    Ids ids;
    for (size_t line = 1; !text.empty(); ++line) {
        const size_t end = std::min(text.find('\n'), text.size());
        const std::string_view content = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
        const std::string where = fmt::format("{}, line {}", path, line);
        probes.push_back(line_probe(parse_json_text(content, where), where));
        ids.add(probes.back().id, where);
    }
    return probes;
}

Probe rys_math_probe(const JsonText& item, const std::string& where, const ProbeOptions& options) {
    Probe probe{.kind = "rys_math", .reading = ReadingRule::rys_math};
    if (!options.rys_math_system.empty()) {
        probe.messages.push_back({"system", options.rys_math_system});
    }
    probe.messages.push_back({"user", options.rys_prefix + text_field(item, "question", where)});
    const JsonText& answer = field(item, "answer", where);
    if (answer.type != Type::number || !all_digits(answer.text) ||
        answer.text.size() > max_digits) {
        fail("{}: the field answer is not a whole number >= 0 of at most {} digits", where,
             max_digits);
    }
    probe.answer = answer.text;
    return probe;
}

double intensity(const JsonText& reference, const std::string& key, const std::string& where) {
    const JsonText& value = field(reference, key, where);  // EQ-Bench itself has some as texts
    double number = 0.0;
    const char* const end = value.text.data() + value.text.size();
    const auto read = std::from_chars(value.text.data(), end, number);
    const bool numeric = value.type == Type::number || value.type == Type::text;
    if (!numeric || read.ec != std::errc{} || read.ptr != end || !(number >= 0 && number <= 10)) {
        fail("{}: the field {} is not a number in 0..10", where, key);
    }
    return number;
}

Probe rys_eq_probe(const JsonText& item, const std::string& where, const ProbeOptions& options) {
    Probe probe{.kind = "rys_eq", .reading = ReadingRule::rys_eq};
    probe.messages.push_back({"user", options.rys_prefix + text_field(item, "prompt", where)});
    const JsonText* reference = item.find("reference_answer");
    if (reference == nullptr) reference = item.find("reference_answer_fullscale");
    if (reference == nullptr || reference->type != Type::object) {
        fail("{}: the field reference_answer is not an object with emotions and scores", where);
    }
    EqReference eq;
    for (size_t i = 0; i < eq.emotions.size(); ++i) {
        const std::string key = fmt::format("emotion{}", i + 1);
        eq.emotions[i] = text_field(*reference, key, where);
        eq.scores[i] = intensity(*reference, key + "_score", where);
    }
    if (std::ranges::all_of(eq.scores, [](double score) { return score == 0; })) {
        fail("{}: all four scores are 0, so there is nothing to compare with", where);
    }
    probe.eq = std::move(eq);
    return probe;
}

std::vector<Probe> parse_rys(std::string_view text, const std::string& path,
                             const ProbeOptions& options) {
    const JsonText file = parse_json_text(text, path);
    std::vector<Probe> probes;
    for (size_t i = 0; i < file.keys.size(); ++i) {
        const std::string where = fmt::format("{}, item {}", path, shortened(file.keys[i]));
        const JsonText& item = file.values[i];
        if (!all_digits(file.keys[i])) fail("{}: items are numbered", where);
        if (item.type != Type::object) fail("{}: not an object", where);
        if (item.find("question") != nullptr) {
            probes.push_back(rys_math_probe(item, where, options));
        } else if (item.find("prompt") != nullptr) {
            probes.push_back(rys_eq_probe(item, where, options));
        } else {
            fail("{}: has neither question (RYS math) nor prompt (RYS EQ)", where);
        }
        if (probes.back().kind != probes.front().kind) {
            fail("{}: an item of RYS math and one of RYS EQ in one file", where);
        }
        probes.back().id = fmt::format("{}-{}", probes.back().kind, file.keys[i]);
        probes.back().max_new_tokens = options.rys_max_new_tokens;
    }
    return probes;
}

/// RYS files are one object whose first key is a number; a line of ours begins with a field's name.
bool is_rys(std::string_view text) {
    constexpr std::string_view space = " \t\r\n";
    const size_t brace = text.find_first_not_of(space);
    if (brace == std::string_view::npos || text[brace] != '{') return false;
    const size_t quote = text.find_first_not_of(space, brace + 1);
    if (quote == std::string_view::npos || text[quote] != '"') return false;
    const size_t end = text.find('"', quote + 1);
    return end != std::string_view::npos && all_digits(text.substr(quote + 1, end - quote - 1));
}

nlohmann::ordered_json line_json(const Probe& probe) {
    nlohmann::ordered_json out{{"id", probe.id}, {"kind", probe.kind}};
    if (!probe.sub.empty()) out["sub"] = probe.sub;
    if (!probe.prompt.empty()) out["prompt"] = probe.prompt;
    for (const ChatMessage& message : probe.messages) {
        out["messages"].push_back({{"role", message.role}, {"content", message.content}});
    }
    out["answer"] = probe.answer;
    if (!probe.options.empty()) out["options"] = probe.options;
    const bool usual = (probe.reading == ReadingRule::integer) == (probe.kind == "arithmetic");
    if (!usual) out["reading"] = probe.reading == ReadingRule::integer ? "integer" : "phrase";
    if (probe.max_new_tokens != usual_new_tokens(probe)) {
        out["max_new_tokens"] = probe.max_new_tokens;
    }
    return out;
}

}  // namespace

int32_t usual_new_tokens(const Probe& probe) {
    const size_t bytes = std::min(probe.answer.size(), size_t{most_new_tokens} / 2);
    return static_cast<int32_t>(bytes) + (probe.is_chat() ? spare_chat_tokens : spare_tokens);
}

std::vector<Probe> read_probe_file(const std::string& path, const ProbeOptions& options) {
    const MappedFile file(path);
    const auto bytes = file.bytes();
    return parse_probe_file({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path,
                            options);
}

std::vector<Probe> parse_probe_file(std::string_view text, const std::string& path,
                                    const ProbeOptions& options) {
    if (text.size() > max_probe_file_bytes) {
        fail("{}: {} bytes are too many for probes; at most {} are read", path, text.size(),
             max_probe_file_bytes);
    }
    constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
    if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
    std::vector<Probe> probes =
        is_rys(text) ? parse_rys(text, path, options) : parse_lines(text, path);
    if (probes.empty()) fail("{}: the file has no probes", path);
    return probes;
}

std::string probe_lines(std::span<const Probe> probes) {
    std::string out;
    for (const Probe& probe : probes) {
        if (probe.reading != ReadingRule::phrase && probe.reading != ReadingRule::integer) {
            fail("probe {}: a line of a probe file cannot say a RYS probe", probe.id);
        }
        out.append(line_json(probe).dump()).append("\n");
    }
    return out;
}

}  // namespace pleat
