#include "lab/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <ranges>
#include <utility>

#include "base/error.h"
#include "generate/prompt.h"
#include "text/chat_template.h"

namespace pleat {

bool is_called(const Measure& measure, std::string_view name) {
    static constexpr std::array<std::array<std::string_view, 2>, 5> others{{{"ppl", "nll"},
                                                                            {"perplexity", "nll"},
                                                                            {"kld", "kl"},
                                                                            {"agreement", "top1"},
                                                                            {"accuracy", "exact"}}};
    const std::string_view full = measure.name;
    const std::string_view plain = full.substr(0, full.find(':'));
    if (name == "probes") return plain != "nll" && plain != "kl" && plain != "top1";
    const auto other = std::ranges::find(others, name, [](const auto& pair) { return pair[0]; });
    if (other != others.end()) name = (*other)[1];
    return name == full || name == plain;
}

size_t Workload::source(const std::string& name, Form form) {
    for (size_t i = 0; i < sources_.size(); ++i) {
        if (sources_[i].name == name && sources_[i].form == form) return i;
    }
    sources_.push_back({name, form});
    return sources_.size() - 1;
}

void Workload::add_text(const std::string& name, std::span<const int32_t> tokens, uint32_t n_ctx,
                        int32_t bos, size_t max_chunks) {
    if (tokens.size() < 2 * size_t{n_ctx}) {
        fail(
            "text {} has {} tokens, but chunks of {} need at least {}; use a longer text or a "
            "smaller -c",
            name, tokens.size(), n_ctx, 2 * size_t{n_ctx});
    }
    const size_t own = source(name, Form::text);
    const size_t n_chunks = std::min(max_chunks, tokens.size() / n_ctx);
    for (size_t c = 0; c < n_chunks; ++c) {
        const auto chunk = tokens.subspan(c * n_ctx, n_ctx);
        ScoredSequence sequence{.id = fmt::format("{}:{}", name, c), .source = own};
        sequence.item.tokens.assign(chunk.begin(), chunk.end());
        if (bos >= 0) sequence.item.tokens.front() = bos;
        for (uint32_t i = n_ctx / 2; i < n_ctx; ++i) {
            // The last token predicts one of the next chunk, so it is not scored; its logits are
            // asked for all the same, since row counts decide bits.
            sequence.item.rows.push_back(static_cast<int32_t>(i));
            sequence.targets.push_back(i + 1 < n_ctx ? chunk[i + 1] : -1);
        }
        sequences_.push_back(std::move(sequence));
    }
}

void Workload::add_probes(std::span<const Probe> probes, const Tokenizer& tokenizer) {
    std::optional<ChatTemplate> chat;
    for (const Probe& probe : probes) {
        if (probe.answer.empty()) {
            fail(
                "probe {} has no one answer, so its likelihood says nothing; score it by "
                "generation",
                probe.id);
        }
        std::vector<int32_t> prompt;
        if (!probe.is_chat()) {
            prompt = prompt_tokens(tokenizer, probe.prompt);
        } else {
            if (!chat) chat.emplace(ChatTemplate::of(tokenizer));
            prompt = chat_prompt_tokens(tokenizer, *chat, probe.messages);
        }
        const std::vector<int32_t> answer = tokenizer.tokenize(probe.answer, false, false);
        if (answer.empty())
            fail("probe {}: the answer \"{}\" has no tokens", probe.id, probe.answer);
        ScoredSequence sequence{.id = probe.id, .source = source(probe.kind, Form::read)};
        for (size_t i = 0; i < answer.size(); ++i) {
            sequence.item.rows.push_back(static_cast<int32_t>(prompt.size() + i) - 1);
            sequence.targets.push_back(answer[i]);
        }
        while (sequence.item.rows.size() % probe_rows != 0) {
            sequence.item.rows.push_back(sequence.item.rows.back());
            sequence.targets.push_back(-1);
        }
        sequence.item.tokens = prompt;
        // What the last token of the answer would predict is nobody's question.
        sequence.item.tokens.insert(sequence.item.tokens.end(), answer.begin(), answer.end() - 1);
        sequences_.push_back(std::move(sequence));
    }
}

void Workload::add_questions(std::span<const Probe> probes, const Tokenizer& tokenizer) {
    tokenizer_ = &tokenizer;
    for (const Probe& probe : probes) {
        const Form form = probe.eq ? Form::answered_eq : Form::answered;
        sequences_.push_back(
            {.id = probe.id, .source = source(probe.kind, form), .question = probe});
    }
}

std::vector<std::string> Workload::ids() const {
    std::vector<std::string> ids;
    for (const ScoredSequence& sequence : sequences_) ids.push_back(sequence.id);
    return ids;
}

std::vector<Measure> Workload::measures_of(const Source& source) const {
    const std::string& name = source.name;
    switch (source.form) {
        case Form::text: {
            const auto n_text = std::ranges::count(sources_, Form::text, &Source::form);
            const std::string suffix = n_text > 1 ? ":" + name : "";
            return {{"nll" + suffix, false}, {"kl" + suffix, false}, {"top1" + suffix, true}};
        }
        case Form::read:
            return {{"exact:" + name, true}, {"answer_nll:" + name, false}};
        case Form::answered:
            return {{"probe:" + name, true},
                    {"exact:" + name, true},
                    {"parsed:" + name, true},
                    {"length_ok:" + name, true},
                    {"cut:" + name, false}};
        case Form::answered_eq:
            return {{"probe:" + name, true},
                    {"nearness:" + name, true},
                    {"confidence:" + name, true},
                    {"parsed:" + name, true},
                    {"cut:" + name, false}};
    }
    return {};
}

bool Workload::wants(const Measure& measure) const {
    return wanted_.empty() || std::ranges::any_of(wanted_, [&](const std::string& name) {
               return is_called(measure, name);
           });
}

void Workload::want_measures(const std::vector<std::string>& names) {
    wanted_.clear();
    const std::vector<Measure> all = measures();
    for (const std::string& name : names) {
        if (std::ranges::any_of(all, [&](const Measure& m) { return is_called(m, name); }))
            continue;
        fail("there is no measure {}; these texts and probes give {}", name,
             fmt::join(all | std::views::transform(&Measure::name), ", "));
    }
    wanted_ = names;
    std::erase_if(sequences_, [&](const ScoredSequence& sequence) {
        return std::ranges::none_of(columns(sequence.source),
                                    [](const auto& column) { return column.has_value(); });
    });
}

std::vector<Measure> Workload::measures() const {
    std::vector<Measure> list;
    for (const Source& source : sources_) {
        for (Measure& measure : measures_of(source)) {
            if (wants(measure)) list.push_back(std::move(measure));
        }
    }
    return list;
}

std::vector<std::optional<size_t>> Workload::columns(size_t source) const {
    std::vector<std::optional<size_t>> columns;
    size_t n = 0;
    for (size_t i = 0; i <= source; ++i) {
        columns.clear();
        for (const Measure& measure : measures_of(sources_[i])) {
            columns.push_back(wants(measure) ? std::optional(n++) : std::nullopt);
        }
    }
    return columns;
}

namespace {

size_t n_scored(const ScoredSequence& sequence) {
    return static_cast<size_t>(
        std::ranges::count_if(sequence.targets, [](int32_t target) { return target >= 0; }));
}

}  // namespace

size_t Workload::n_items(size_t sequence) const {
    const ScoredSequence& it = sequences_.at(sequence);
    if (!is_text(it.source)) return 1;
    return (n_scored(it) + text_item_tokens - 1) / text_item_tokens;
}

size_t Workload::n_targets() const {
    size_t n = 0;
    for (const ScoredSequence& sequence : sequences_) n += n_scored(sequence);
    return n;
}

}  // namespace pleat
