#include "serve/completion_response.h"

#include "serve/shown_tokens.h"
#include "text/utf8_stream.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

ordered_json token_ids(const std::vector<TokenOutput>& tokens) {
    ordered_json ids = ordered_json::array();
    for (const TokenOutput& token : tokens) ids.push_back(token.drawn.token);
    return ids;
}

}  // namespace

ordered_json selected_fields(const ordered_json& object, const std::vector<std::string>& names) {
    if (names.empty()) return object;
    ordered_json result = ordered_json::object();
    for (const std::string& name : names) {
        const ordered_json* value = &object;
        std::string_view rest = name;
        while (value != nullptr && !rest.empty()) {
            const std::string_view step = rest.substr(0, rest.find('/'));
            rest.remove_prefix(std::min(rest.size(), step.size() + 1));
            const auto found = value->is_object() ? value->find(step) : value->end();
            value = found == value->end() ? nullptr : &*found;
        }
        if (value != nullptr) result[name] = *value;
    }
    return result;
}

ordered_json CompletionResponse::whole(size_t index, const JobRequest& job,
                                       const Answer& answer) const {
    const JobResult& result = answer.result;
    const bool ids = request_.return_tokens && !request_.stream;
    const size_t n_predicted = result.timings.n_predicted;
    ordered_json settings = generation_settings_json(job.generation, job.n_probs, request_.stream);
    settings["seed"] = result.seed;
    settings["timings_per_token"] = request_.timings_per_token;
    ordered_json whole = {
        {"index", index},
        {"content", request_.stream ? std::string() : answer.text},
        {"tokens", ids ? token_ids(answer.tokens) : ordered_json::array()},
        {"id_slot", result.slot},
        {"stop", true},
        {"model", head_.model},
        {"system_fingerprint", head_.fingerprint},
        {"tokens_predicted", n_predicted},
        {"tokens_evaluated", result.timings.n_prompt},
        {"generation_settings", std::move(settings)},
        {"prompt", to_utf8(tokenizer_.detokenize(job.prompt, true))},
        {"has_new_line", answer.text.find('\n') != std::string::npos},
        {"truncated", result.reason == FinishReason::context},
        {"stop_type", stop_type_text(result.reason)},
        {"stopping_word", to_utf8(result.stop)},
        // The last token drawn has not been decoded.
        {"tokens_cached", result.timings.n_prompt + (n_predicted > 0 ? n_predicted - 1 : 0)},
        {"timings", timings_json(result.timings)}};
    if (job.n_probs >= 0 && !request_.stream) {
        whole["completion_probabilities"] =
            all_token_probs_json(shown_tokens(answer, tokenizer_, job.generation.special),
                                 tokenizer_, job.generation.special);
    }
    return selected_fields(whole, request_.response_fields);
}

ordered_json CompletionResponse::part(size_t index, const JobRequest& job, const JobEvent& event,
                                      const std::vector<TokenOutput>& told) const {
    ordered_json part = {{"index", index},
                         {"content", event.text},
                         {"tokens", token_ids(event.tokens)},
                         {"stop", false},
                         {"id_slot", job.slot},
                         {"tokens_predicted", event.timings.n_predicted},
                         {"tokens_evaluated", job.prompt.size()}};
    if (job.n_probs >= 0) {
        part["completion_probabilities"] =
            all_token_probs_json(told, tokenizer_, job.generation.special);
    }
    if (request_.timings_per_token) part["timings"] = timings_json(event.timings);
    return part;
}

}  // namespace pleat
