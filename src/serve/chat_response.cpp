#include "serve/chat_response.h"
#include "serve/shown_tokens.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

ordered_json message_json(const ChatAnswer& answer) {
    ordered_json message = {{"role", "assistant"}};
    const bool only_calls = answer.content.empty() && !answer.calls.empty();
    message["content"] = only_calls ? ordered_json() : ordered_json(answer.content);
    if (!answer.reasoning.empty()) message["reasoning_content"] = answer.reasoning;
    if (answer.calls.empty()) return message;
    ordered_json& calls = message["tool_calls"] = ordered_json::array();
    for (const ToolCall& call : answer.calls) {
        calls.push_back({{"type", "function"},
                         {"function", {{"name", call.name}, {"arguments", call.arguments}}},
                         {"id", call.id}});
    }
    return message;
}

/// The first delta of a call has its id and name, the others only more of its arguments.
ordered_json call_json(const ToolCallDelta& call) {
    ordered_json json = {{"index", call.index}};
    ordered_json function = ordered_json::object();
    if (!call.id.empty()) {
        json["id"] = call.id;
        json["type"] = "function";
        function["name"] = call.name;
    }
    function["arguments"] = call.arguments;
    json["function"] = std::move(function);
    return json;
}

ordered_json delta_json(const ChatDelta& delta) {
    ordered_json json = ordered_json::object();
    if (!delta.reasoning.empty()) json["reasoning_content"] = delta.reasoning;
    if (!delta.content.empty()) json["content"] = delta.content;
    if (delta.calls.empty()) return json;
    ordered_json& calls = json["tool_calls"] = ordered_json::array();
    for (const ToolCallDelta& call : delta.calls) calls.push_back(call_json(call));
    return json;
}

}  // namespace

ordered_json ChatResponse::frame(std::string_view object, ordered_json choices) const {
    return {{"choices", std::move(choices)},
            {"created", head_.created},
            {"id", head_.id},
            {"model", head_.model},
            {"system_fingerprint", head_.fingerprint},
            {"object", object}};
}

ordered_json ChatResponse::chunk(size_t index, ordered_json delta,
                                 ordered_json finish_reason) const {
    ordered_json choice = {
        {"finish_reason", std::move(finish_reason)}, {"index", index}, {"delta", std::move(delta)}};
    return frame("chat.completion.chunk", ordered_json::array({std::move(choice)}));
}

ordered_json ChatResponse::logprobs(const std::vector<TokenOutput>& tokens) const {
    return {{"content", all_token_probs_json(tokens, tokenizer_, request_.generation.special)}};
}

ordered_json ChatResponse::whole(const std::vector<Answer>& answers,
                                 const std::vector<ChatAnswer>& parsed) const {
    ordered_json choices = ordered_json::array();
    std::vector<JobTimings> timings;
    for (size_t i = 0; i < answers.size(); ++i) {
        const JobResult& result = answers[i].result;
        ordered_json choice = {
            {"finish_reason", finish_reason_text(result.reason, !parsed.at(i).calls.empty())},
            {"index", i},
            {"message", message_json(parsed[i])}};
        if (with_logprobs())
            choice["logprobs"] =
                logprobs(shown_tokens(answers[i], tokenizer_, request_.generation.special));
        choices.push_back(std::move(choice));
        timings.push_back(result.timings);
    }
    ordered_json whole = frame("chat.completion", std::move(choices));
    whole["usage"] = usage_json(usage_of(timings, answers.size()));
    whole["timings"] = timings_json(sum_of(timings));
    return whole;
}

ordered_json ChatResponse::begin(size_t index) const {
    return chunk(index, {{"role", "assistant"}, {"content", nullptr}}, nullptr);
}

ordered_json ChatResponse::part(size_t index, const ChatDelta& delta,
                                const std::vector<TokenOutput>& tokens,
                                const JobTimings& timings) const {
    ordered_json part = chunk(index, delta_json(delta), nullptr);
    if (with_logprobs()) part["choices"][0]["logprobs"] = logprobs(tokens);
    if (request_.timings_per_token) part["timings"] = timings_json(timings);
    return part;
}

ordered_json ChatResponse::end(size_t index, const JobResult& result, bool calls) const {
    ordered_json end =
        chunk(index, ordered_json::object(), finish_reason_text(result.reason, calls));
    if (!request_.include_usage) end["timings"] = timings_json(result.timings);
    return end;
}

ordered_json ChatResponse::usage(const std::vector<JobTimings>& timings) const {
    ordered_json usage = frame("chat.completion.chunk", ordered_json::array());
    usage["usage"] = usage_json(usage_of(timings, timings.size()));
    usage["timings"] = timings_json(sum_of(timings));
    return usage;
}

}  // namespace pleat
