#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/probes.h"
#include "lab/scores.h"
#include "lab/sweep.h"
#include "text/tokenizer.h"

namespace pleat {

/// Whether a user's name means the measure: its own ("exact:logic"), the same without the kind
/// ("exact"), "ppl" or "perplexity" for nll, "kld" for kl, "agreement" for top1, "accuracy" for
/// exact, "probes" for all that probes give.
bool is_called(const Measure& measure, std::string_view name);

/// One sequence whose next tokens are scored under every plan, or a question that every plan
/// answers.
struct ScoredSequence {
    std::string id;  ///< decides whether it belongs to selection or validation
    SweepItem item = {};
    std::vector<int32_t> targets =
        {};             ///< by row: the token that should come next, -1 = not scored
    size_t source = 0;  ///< which text or kind of probe it belongs to
    std::optional<Probe> question = {};  ///< to be answered; nothing is read then
};

/// What plans are scored on: by reading alone, texts and probes whose answers are given, where the
/// answer of a probe counts as right when every token of it is the likeliest after those before,
/// which is what greedy generation would have said; and by generation, probes that are answered.
class Workload {
  public:
    /// Scored tokens of a text that make one item of statistics.
    static constexpr size_t text_item_tokens = 32;
    /// Rows of a probe are filled up to a multiple of this (with targets of -1), so that no kernel
    /// groups the rows of one probe with those of another.
    static constexpr size_t probe_rows = 8;

    /// By the rule of stock's perplexity tool: chunks of n_ctx tokens, the first token of each
    /// replaced by `bos` unless negative, the second half scored. Measures "nll", "kl" and "top1",
    /// with ":name" behind when there are several texts. Throws Error when the text is too short.
    void add_text(const std::string& name, std::span<const int32_t> tokens, uint32_t n_ctx,
                  int32_t bos, size_t max_chunks = SIZE_MAX);
    /// Measures "exact:KIND" and "answer_nll:KIND" for every kind. Probes for chat need the model's
    /// template; without one they are an Error, as are those without a fixed answer.
    void add_probes(std::span<const Probe> probes, const Tokenizer& tokenizer);

    /// Probes that plans answer in their own words. Measures of every kind: "probe:KIND" (the
    /// score, with partial credit where the kind gives it), "exact:KIND", "parsed:KIND",
    /// "length_ok:KIND", "cut:KIND"; of RYS's EQ probes "probe:KIND", "nearness:KIND",
    /// "confidence:KIND", "parsed:KIND", "cut:KIND". The tokenizer is borrowed.
    void add_questions(std::span<const Probe> probes, const Tokenizer& tokenizer);

    const std::vector<ScoredSequence>& sequences() const { return sequences_; }
    std::vector<std::string> ids() const;

    /// Only measures of these names, as is_called says, are wanted; without a name all are. Leaves
    /// out the sequences that give none of them. Throws Error for a name that no measure has.
    void want_measures(const std::vector<std::string>& names);
    /// In the order of scores.
    std::vector<Measure> measures() const;
    /// For each measure that a source can have its index in measures(), or nothing when it is not
    /// wanted.
    std::vector<std::optional<size_t>> columns(size_t source) const;
    /// What texts call the source: the name of a text, the kind of probes.
    const std::string& source_name(size_t source) const { return sources_[source].name; }
    bool is_text(size_t source) const { return sources_[source].form == Form::text; }
    /// Of add_questions; null when there are no questions.
    const Tokenizer* tokenizer() const { return tokenizer_; }
    /// Items that the sequence adds to each measure of its source.
    size_t n_items(size_t sequence) const;
    /// Scored tokens over all sequences.
    size_t n_targets() const;

  private:
    enum class Form : uint8_t { text, read, answered, answered_eq };
    struct Source {
        std::string name;
        Form form = Form::text;
    };
    size_t source(const std::string& name, Form form);
    std::vector<Measure> measures_of(const Source& source) const;
    bool wants(const Measure& measure) const;

    std::vector<ScoredSequence> sequences_;
    std::vector<Source> sources_;
    std::vector<std::string> wanted_;
    const Tokenizer* tokenizer_ = nullptr;
};

}  // namespace pleat
