#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/scores.h"
#include "text/chat_template.h"

namespace pleat {

/// How an answer is found in generated text and scored.
enum class ReadingRule : uint8_t {
    phrase,    ///< the first phrase must be the answer
    integer,   ///< as phrase, with partial credit for the first integer in it
    rys_math,  ///< the best of all integers, as RYS scores its math guesses
    rys_eq,    ///< four intensities of emotions, as RYS reads them
};

/// The intensities that people gave to four emotions.
struct EqReference {
    std::array<std::string, 4> emotions;
    std::array<double, 4> scores{};  ///< scaled to the sum 10, or else 0..10 each
    bool operator==(const EqReference&) const = default;
};

/// One question to a model. Either a text to continue, after which the answer follows as it stands
/// (with its leading space), or messages for the model's chat template. A chat probe may have a
/// prompt too: the same conversation as one model's template would write it.
struct Probe {
    std::string id{};
    std::string kind{};  ///< "arithmetic", "retrieval", "rys_math", ...; scored as "probe:<kind>"
    std::string sub{};   ///< the form within a kind; may be empty
    std::string prompt{};
    std::vector<ChatMessage> messages{};
    std::string answer{};                ///< digits for rys_math; empty for rys_eq
    std::vector<std::string> options{};  ///< the answers to choose among, without leading spaces
    ReadingRule reading = ReadingRule::phrase;
    int32_t max_new_tokens = 0;
    std::optional<EqReference> eq{};

    bool is_chat() const { return !messages.empty(); }
    bool operator==(const Probe&) const = default;
};

/// What a RYS file leaves to the program that asks.
struct ProbeOptions {
    std::string rys_prefix = "/no_think ";  ///< before what the user says; may be empty
    std::string rys_math_system =
        "You are highly intelligent and very good at guessing the size of numbers. You always "
        "give an answer, also when you are not sure.";
    int32_t rys_max_new_tokens = 64;
    bool operator==(const ProbeOptions&) const = default;
};

inline constexpr size_t max_probe_file_bytes = size_t{64} << 20;

/// Reads a probe file, told apart by content:
/// - JSON Lines: id, kind, answer, and prompt or messages; sub, options and max_new_tokens where
///   there are any; other fields are passed over. Empty lines too.
/// - RYS math: one object, {"0": {"question": TEXT, "answer": INTEGER}}; integers of any length.
/// - RYS EQ: one object, {"1": {"prompt": TEXT, "reference_answer": {"emotion1": NAME,
///   "emotion1_score": NUMBER, ...}}}; reference_answer_fullscale where the first is missing.
/// Throws Error of one line that names the file and the line or item, also for an id that comes
/// twice, bytes that are no UTF-8, and a file without probes.
std::vector<Probe> read_probe_file(const std::string& path, const ProbeOptions& options = {});
/// The same from text; `path` is for messages.
std::vector<Probe> parse_probe_file(std::string_view text, const std::string& path,
                                    const ProbeOptions& options = {});

/// Tokens enough for the answer of a probe and to see that it ended: one for each of its bytes, and
/// some more.
int32_t usual_new_tokens(const Probe& probe);

/// The probes as JSON Lines, in a fixed order of fields. Only for kinds that such a file can say:
/// parsing it gives equal probes. Throws Error for RYS probes.
std::string probe_lines(std::span<const Probe> probes);

/// A rendered prompt after which a thinking model answers at once: without an open `<think>` at its
/// end, and with a closed block that holds `sentence`. Unchanged when the sentence is empty.
std::string with_closed_thinking(std::string prompt, std::string_view sentence);

/// How a generated text came to its end.
enum class TextEnd : uint8_t {
    complete,  ///< by the model or a stop string
    cut,       ///< by the number of tokens or the context
};

/// What an answer is worth.
struct ProbeResult {
    double score = 0.0;       ///< 0..1: 1 or 0, or partial credit where the rule gives it
    bool exact = false;       ///< the answer itself
    bool parsed = false;      ///< there was something of the answer's form
    bool length_ok = false;   ///< as many digits as the answer; for EQ: four numbers
    bool cut = false;         ///< the text ended before what was read did
    bool fallback = false;    ///< RYS: read from text that its first way of reading does not see
    double confidence = 1.0;  ///< EQ: RYS's, 0..1
    double eq = 0.0;          ///< EQ: 1 - sum |predicted - reference| / 20, both scaled to sum 10
    std::string read{};       ///< what was taken for the answer
    bool operator==(const ProbeResult&) const = default;
};

/// Reads the answer of a probe from what the model wrote.
/// - phrase: white space before it is passed over; it ends with its line, or before ". ", "! ",
///   "? " or such a mark at the end.
/// - integer: score 1 for the exact phrase, else the partial credit of the first integer in it, or
///   0 when the signs differ.
/// - rys_math, rys_eq: see rys_probes.h.
ProbeResult read_answer(const Probe& probe, std::string_view text, TextEnd end);

/// Means over results; of no results all 0.
struct ProbeSummary {
    size_t n = 0;
    double score = 0.0;
    double exact = 0.0;
    double parsed = 0.0;
    double length_ok = 0.0;
    double cut = 0.0;
    bool operator==(const ProbeSummary&) const = default;
};
ProbeSummary summarize(std::span<const ProbeResult> results);

/// The EQ probe twice: RYS's number, for comparison, in which a missing heading costs as much as a
/// wrong feeling; and what it mixes, kept apart.
struct EqSummary {
    size_t n = 0;
    double eq_rys = 0.0;           ///< mean of confidence * raw + (1 - confidence) / 2
    double parse_rate = 0.0;       ///< answers in which four numbers could be told
    double mean_confidence = 0.0;  ///< of all answers
    double eq_parsed = 0.0;        ///< mean of ProbeResult::eq over the parsed ones; 0 if none
    bool operator==(const EqSummary&) const = default;
};
EqSummary summarize_eq(std::span<const ProbeResult> results);

/// One item of weight 1 for each result.
ItemScores item_scores(std::span<const ProbeResult> results);

}  // namespace pleat
