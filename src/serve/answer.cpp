#include "serve/answer.h"

#include <array>
#include <random>

#include "base/error.h"
#include "text/utf8_stream.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

double per_second(size_t n, double ms) {
    return ms > 0.0 ? 1e3 * static_cast<double>(n) / ms : 0.0;
}

double per_token(size_t n, double ms) { return n > 0 ? ms / static_cast<double>(n) : 0.0; }

ordered_json one_token(const TokenProb& token, const Tokenizer& tokenizer, bool special) {
    const std::string piece = tokenizer.piece(token.token, special);
    ordered_json bytes = ordered_json::array();
    for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
    return {{"id", token.token},
            {"token", to_utf8(piece)},
            {"bytes", std::move(bytes)},
            {"logprob", token.logprob}};
}

}  // namespace

Usage usage_of(const std::vector<JobTimings>& timings, size_t n) {
    Usage usage;
    for (size_t i = 0; i < timings.size(); ++i) {
        if (i % n == 0) {
            usage.prompt_tokens += timings[i].n_prompt;
            usage.cached_tokens += timings[i].n_cached;
        }
        usage.completion_tokens += timings[i].n_predicted;
    }
    return usage;
}

ordered_json usage_json(const Usage& usage) {
    return {{"completion_tokens", usage.completion_tokens},
            {"prompt_tokens", usage.prompt_tokens},
            {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
            {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

ordered_json timings_json(const JobTimings& t) {
    const size_t n_processed = t.n_prompt - t.n_cached;
    return {{"cache_n", t.n_cached},
            {"prompt_n", n_processed},
            {"prompt_ms", t.prompt_ms},
            {"prompt_per_token_ms", per_token(n_processed, t.prompt_ms)},
            {"prompt_per_second", per_second(n_processed, t.prompt_ms)},
            {"predicted_n", t.n_predicted},
            {"predicted_ms", t.predicted_ms},
            {"predicted_per_token_ms", per_token(t.n_predicted, t.predicted_ms)},
            {"predicted_per_second", per_second(t.n_predicted, t.predicted_ms)}};
}

JobTimings sum_of(const std::vector<JobTimings>& timings) {
    JobTimings sum;
    for (const JobTimings& t : timings) {
        sum.n_prompt += t.n_prompt;
        sum.n_cached += t.n_cached;
        sum.n_predicted += t.n_predicted;
        sum.prompt_ms += t.prompt_ms;
        sum.predicted_ms += t.predicted_ms;
    }
    return sum;
}

std::string_view finish_reason_text(FinishReason reason, bool calls) {
    switch (reason) {
        case FinishReason::eos:
        case FinishReason::stop_string:
            return calls ? "tool_calls" : "stop";
        case FinishReason::length:
        case FinishReason::context:
        case FinishReason::cancelled:
            return "length";
    }
    fail("unknown finish reason {}", static_cast<int>(reason));
}

std::string_view stop_type_text(FinishReason reason) {
    switch (reason) {
        case FinishReason::eos:
            return "eos";
        case FinishReason::stop_string:
            return "word";
        case FinishReason::length:
        case FinishReason::context:
        case FinishReason::cancelled:
            return "limit";
    }
    fail("unknown finish reason {}", static_cast<int>(reason));
}

std::string random_id(std::string_view prefix) {
    constexpr std::string_view letters =
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    thread_local std::mt19937_64 random = [] {
        std::random_device device;
        std::seed_seq seed{device(), device(), device(), device()};
        return std::mt19937_64(seed);
    }();
    std::uniform_int_distribution<size_t> letter(0, letters.size() - 1);
    std::string id(prefix);
    for (int i = 0; i < 32; ++i) id += letters[letter(random)];
    return id;
}

ordered_json token_probs_json(const TokenOutput& token, const Tokenizer& tokenizer, bool special) {
    ordered_json result = one_token(token.drawn, tokenizer, special);
    ordered_json& top = result["top_logprobs"] = ordered_json::array();
    for (const TokenProb& likely : token.top) top.push_back(one_token(likely, tokenizer, special));
    return result;
}

ordered_json all_token_probs_json(const std::vector<TokenOutput>& tokens,
                                  const Tokenizer& tokenizer, bool special) {
    ordered_json list = ordered_json::array();
    for (const TokenOutput& token : tokens) {
        list.push_back(token_probs_json(token, tokenizer, special));
    }
    return list;
}

std::string json_text(const ordered_json& value) {
    return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string event_text(const ordered_json& value) { return "data: " + json_text(value) + "\n\n"; }

}  // namespace pleat
