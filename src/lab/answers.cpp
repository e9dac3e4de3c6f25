#include "lab/answers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "generate/prompt.h"
#include "lab/scorer.h"
#include "text/chat_template.h"

namespace pleat {
namespace {

/// One question under way.
struct Question {
    const Probe* probe = nullptr;
    std::vector<int32_t> prompt = {};
    std::vector<int32_t> answer = {};
    TextEnd end = TextEnd::cut;
    bool done = false;
};

/// A line with something on it has come to its end.
bool line_ended(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\r\n");
    return begin != std::string_view::npos && text.find('\n', begin) != std::string_view::npos;
}

std::vector<Question> make_questions(const Tokenizer& tokenizer, std::span<const Probe> probes,
                                     uint32_t n_ctx_train) {
    std::optional<ChatTemplate> chat;
    std::vector<Question> questions;
    for (const Probe& probe : probes) {
        Question question{.probe = &probe};
        if (!probe.is_chat()) {
            question.prompt = prompt_tokens(tokenizer, probe.prompt);
        } else {
            if (!chat) chat.emplace(ChatTemplate::of(tokenizer));
            question.prompt = chat_prompt_tokens(tokenizer, *chat, probe.messages);
        }
        const size_t needed = question.prompt.size() + static_cast<size_t>(probe.max_new_tokens);
        if (needed > n_ctx_train) {
            fail("probe {}: {} tokens of prompt and {} of answer do not fit into the model's {}",
                 probe.id, question.prompt.size(), probe.max_new_tokens, n_ctx_train);
        }
        questions.push_back(std::move(question));
    }
    return questions;
}

class Answering {
  public:
    Answering(Context& context, const Tokenizer& tokenizer)
        : context_(context), tokenizer_(tokenizer) {}

    /// Answers a group, one sequence each.
    void run(std::span<Question> group) {
        context_.clear();
        Batch batch;
        std::vector<Question*> asked;
        for (size_t s = 0; s < group.size(); ++s) {
            add(batch, s, group[s].prompt);
            asked.push_back(&group[s]);
        }
        while (!batch.empty()) {
            if (context_.decode(batch) != DecodeStatus::ok) fail("the questions do not fit");
            batch.clear();
            std::vector<Question*> next;
            for (size_t i = 0; i < asked.size(); ++i) {
                Question& question = *asked[i];
                take(question, likeliest(context_.logits(i)));
                if (question.done) continue;
                add(batch, static_cast<size_t>(&question - group.data()),
                    std::span(question.answer).last(1));
                next.push_back(&question);
            }
            asked = std::move(next);
        }
    }

  private:
    void add(Batch& batch, size_t sequence, std::span<const int32_t> tokens) const {
        int32_t position = context_.next_position(static_cast<int32_t>(sequence));
        for (size_t i = 0; i < tokens.size(); ++i) {
            batch.push_back({.token = tokens[i],
                             .position = position++,
                             .sequence = static_cast<int32_t>(sequence),
                             .output = i + 1 == tokens.size()});
        }
    }

    void take(Question& question, int32_t token) const {
        const Probe& probe = *question.probe;
        if (tokenizer_.is_eog(token)) {
            question.done = true;
            question.end = TextEnd::complete;
            return;
        }
        question.answer.push_back(token);
        if (!probe.is_chat() && line_ended(tokenizer_.detokenize(question.answer, false))) {
            question.done = true;
            question.end = TextEnd::complete;
        } else if (question.answer.size() >= static_cast<size_t>(probe.max_new_tokens)) {
            question.done = true;
        }
    }

    Context& context_;
    const Tokenizer& tokenizer_;
};

}  // namespace

std::vector<ProbeResult> answer_probes(const std::shared_ptr<Model>& model, const LayerPlan& plan,
                                       const Tokenizer& tokenizer, std::span<const Probe> probes,
                                       const AnswerSettings& settings,
                                       const std::function<bool(double)>& progress) {
    std::vector<Question> questions =
        make_questions(tokenizer, probes, model->hparams().n_ctx_train);
    if (questions.empty()) return {};
    size_t longest = 0;
    for (const Question& question : questions) {
        longest = std::max(
            longest, question.prompt.size() + static_cast<size_t>(question.probe->max_new_tokens));
    }
    ContextSettings context_settings = settings.context;
    context_settings.cache.n_ctx = static_cast<uint32_t>(longest);
    context_settings.cache.n_seq = std::clamp<uint32_t>(
        std::min<uint32_t>(settings.n_parallel, static_cast<uint32_t>(questions.size())), 1,
        max_sequences);
    context_settings.cache.kv_unified = false;
    Context context(model, plan, context_settings);
    Answering answering(context, tokenizer);
    const size_t n = context_settings.cache.n_seq;
    for (size_t at = 0; at < questions.size(); at += n) {
        answering.run(std::span(questions).subspan(at, std::min(n, questions.size() - at)));
        const double done = static_cast<double>(std::min(at + n, questions.size())) /
                            static_cast<double>(questions.size());
        if (progress && !progress(done)) return {};
    }
    std::vector<ProbeResult> results;
    for (const Question& question : questions) {
        const std::string text = tokenizer.detokenize(question.answer, false);
        results.push_back(read_answer(*question.probe, text, question.end));
    }
    return results;
}

}  // namespace pleat
