// /v1/chat/completions and /apply-template.
#include <httplib.h>

#include <random>
#include <utility>

#include "serve/api_state.h"
#include "serve/chat_request.h"
#include "serve/chat_response.h"
#include "serve/constraint_fields.h"
#include "serve/endpoint_stream.h"
#include "serve/refused_fields.h"
#include "serve/shown_tokens.h"

namespace pleat {
namespace {

ChatPrompt prepare(const ApiState& state, const Fields& fields) {
    const ChatDefaults defaults{.reasoning = state.settings.reasoning,
                                .continue_answers = state.settings.continue_answers,
                                .template_arguments = state.settings.template_arguments};
    const ChatRequest request = chat_fields(fields, defaults, state.settings.limits);
    check_constraint(fields, request.grammar, state.tokenizer);
    return chat_prompt(state.format, request);
}

/// What the conversation's form asks of the generation.
void add_prompt_params(GenerationParams& params, const ChatPrompt& prompt) {
    params.sampling.constraint = prompt.constraint;
    params.stops.insert(params.stops.end(), prompt.stops.begin(), prompt.stops.end());
    params.special = prompt.special;
    params.whole_characters = true;
}

/// Of tool calls: no two of a conversation may have the same id, whatever the seed.
uint64_t random_id_seed() {
    std::random_device device;
    return uint64_t{device()} << 32U | device();
}

class ChatStream {
  public:
    ChatStream(GenerationRequest request, const Tokenizer& tokenizer, AnswerHead head,
               ChatSyntax syntax, size_t n_jobs)
        : request_(std::move(request)), response_(request_, tokenizer, std::move(head)) {
        syntax.takes_back = false;
        for (size_t i = 0; i < n_jobs; ++i) {
            choices_.push_back({.parser = ChatParser(syntax, random_id_seed()),
                                .shown = ShownTokens(tokenizer, request_.generation.special)});
        }
    }
    ChatStream(const ChatStream&) = delete;
    ChatStream& operator=(const ChatStream&) = delete;

    std::string event(const JobGroup::Event& it, const Job& job) {
        Choice& choice = choices_[it.index];
        std::string text;
        if (!choice.begun) text += event_text(response_.begin(it.index));
        choice.begun = true;
        if (response_.with_logprobs()) {
            for (TokenOutput& token : choice.shown.take(it.event.text, it.event.tokens)) {
                choice.untold.push_back(std::move(token));
            }
        }
        text += told(it, choice.parser.feed(it.event.text));
        if (it.event.last) {
            text += told(it, choice.parser.finish());
            // Tokens without a text of their own, such as the end's.
            if (!choice.untold.empty()) text += chunk(it, {});
            text += event_text(response_.end(it.index, job.result(), choice.parser.n_calls() > 0));
        }
        return text;
    }

    std::string end(const std::vector<JobTimings>& timings) const {
        return (request_.include_usage ? event_text(response_.usage(timings)) : std::string()) +
               "data: [DONE]\n\n";
    }

  private:
    struct Choice {
        ChatParser parser;
        ShownTokens shown;
        bool begun = false;
        std::vector<TokenOutput> untold = {};  ///< of text that the parser still holds
    };

    std::string told(const JobGroup::Event& it, const ChatDelta& delta) {
        const bool nothing =
            delta.content.empty() && delta.reasoning.empty() && delta.calls.empty();
        return nothing ? std::string() : chunk(it, delta);
    }

    std::string chunk(const JobGroup::Event& it, const ChatDelta& delta) {
        const std::vector<TokenOutput> tokens = std::exchange(choices_[it.index].untold, {});
        return event_text(response_.part(it.index, delta, tokens, it.event.timings));
    }

    const GenerationRequest request_;
    const ChatResponse response_;
    std::vector<Choice> choices_;
};

}  // namespace

void answer_chat(ApiState& state, const Fields& fields, const httplib::Request& request,
                 httplib::Response& response) {
    check_refused_fields(fields, Endpoint::chat);
    GenerationRequest wanted = generation_request(fields, state.context());
    const int n_probs = chat_logprobs_fields(fields, state.settings.limits);
    if (n_probs >= 0) wanted.n_probs = n_probs;
    const ChatPrompt prompt = prepare(state, fields);
    add_prompt_params(wanted.generation, prompt);
    const std::shared_ptr<JobGroup> group = state.submit(
        wanted, {of_field("messages", [&] {
            return state.prompt_tokenizer.rendered(prompt.text, request.is_connection_closed);
        })});
    AnswerHead head = state.head(wanted.variant, "chatcmpl-");
    if (wanted.stream) {
        const auto stream = std::make_shared<ChatStream>(
            std::move(wanted), state.tokenizer, std::move(head), prompt.syntax, group->size());
        stream_answers(state, response, group, stream);
        return;
    }
    const std::vector<Answer> answers = wait_for_answers(*group, request);
    state.note_lengths(*group);
    std::vector<ChatAnswer> parsed;
    for (const Answer& answer : answers) {
        parsed.push_back(parse_answer(prompt.syntax, random_id_seed(), answer.text));
    }
    const ChatResponse form(wanted, state.tokenizer, std::move(head));
    answer_json(response, form.whole(answers, parsed));
}

void answer_template(ApiState& state, const Fields& fields, const httplib::Request&,
                     httplib::Response& response) {
    check_refused_fields(fields, Endpoint::chat);
    answer_json(response, {{"prompt", prepare(state, fields).text}});
}

}  // namespace pleat
