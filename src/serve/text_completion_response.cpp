#include "serve/text_completion_response.h"

#include <algorithm>

#include "serve/shown_tokens.h"
#include "text/utf8_stream.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

ordered_json choice_json(size_t index, const std::string& text, ordered_json logprobs,
                         ordered_json finish_reason) {
    return {{"text", text},
            {"index", index},
            {"logprobs", std::move(logprobs)},
            {"finish_reason", std::move(finish_reason)}};
}

/// That begin in these bytes.
size_t n_characters(std::string_view bytes) {
    return static_cast<size_t>(std::ranges::count_if(
        bytes, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

}  // namespace

ordered_json TextCompletionResponse::frame(ordered_json choices) const {
    return {{"choices", std::move(choices)}, {"created", head_.created},
            {"model", head_.model},          {"system_fingerprint", head_.fingerprint},
            {"object", "text_completion"},   {"id", head_.id}};
}

ordered_json TextCompletionResponse::logprobs(const std::vector<TokenOutput>& tokens,
                                              size_t& offset) const {
    if (request_.n_probs < 0) return nullptr;
    const bool special = request_.generation.special;
    ordered_json texts = ordered_json::array();
    ordered_json drawn = ordered_json::array();
    ordered_json top = ordered_json::array();
    ordered_json offsets = ordered_json::array();
    for (const TokenOutput& token : tokens) {
        const std::string piece = tokenizer_.piece(token.drawn.token, special);
        texts.push_back(to_utf8(piece));
        drawn.push_back(token.drawn.logprob);
        ordered_json likely = ordered_json::object();
        for (const TokenProb& it : token.top) {
            likely[to_utf8(tokenizer_.piece(it.token, special))] = it.logprob;
        }
        top.push_back(std::move(likely));
        offsets.push_back(offset);
        offset += n_characters(piece);
    }
    return {{"tokens", std::move(texts)},
            {"token_logprobs", std::move(drawn)},
            {"top_logprobs", std::move(top)},
            {"text_offset", std::move(offsets)},
            {"content", all_token_probs_json(tokens, tokenizer_, special)}};
}

ordered_json TextCompletionResponse::whole(const std::vector<Answer>& answers) const {
    ordered_json choices = ordered_json::array();
    std::vector<JobTimings> timings;
    for (const Answer& answer : answers) {
        size_t offset = 0;
        const auto told = shown_tokens(answer, tokenizer_, request_.generation.special);
        choices.push_back(choice_json(choices.size(), answer.text, logprobs(told, offset),
                                      finish_reason_text(answer.result.reason)));
        timings.push_back(answer.result.timings);
    }
    ordered_json result = frame(std::move(choices));
    result["usage"] = usage_json(usage_of(timings, static_cast<size_t>(request_.n)));
    result["timings"] = timings_json(sum_of(timings));
    return result;
}

ordered_json TextCompletionResponse::part(size_t index, const JobEvent& event,
                                          size_t& offset) const {
    ordered_json chunk = frame(ordered_json::array(
        {choice_json(index, event.text, logprobs(event.tokens, offset), nullptr)}));
    if (request_.timings_per_token) chunk["timings"] = timings_json(event.timings);
    return chunk;
}

ordered_json TextCompletionResponse::end(size_t index, const JobResult& result) const {
    ordered_json chunk = frame(
        ordered_json::array({choice_json(index, "", nullptr, finish_reason_text(result.reason))}));
    chunk["timings"] = timings_json(result.timings);
    return chunk;
}

ordered_json TextCompletionResponse::usage(const std::vector<JobTimings>& timings) const {
    ordered_json chunk = frame(ordered_json::array());
    chunk["usage"] = usage_json(usage_of(timings, static_cast<size_t>(request_.n)));
    chunk["timings"] = timings_json(sum_of(timings));
    return chunk;
}

}  // namespace pleat
