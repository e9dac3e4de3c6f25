#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "serve/job.h"
#include "text/tokenizer.h"

namespace pleat {

/// What every part of a response says of the whole.
struct AnswerHead {
    std::string id = {};
    int64_t created = 0;  ///< seconds since 1970
    std::string model = {};
    std::string fingerprint = {};  ///< the program, its version, the plan's hash
};

/// What became of one job.
struct Answer {
    std::string text = {};
    std::vector<TokenOutput> tokens = {};
    JobResult result = {};
};

/// OpenAI's "usage": the tokens of each prompt count once, those of all answers.
struct Usage {
    size_t prompt_tokens = 0;
    size_t cached_tokens = 0;
    size_t completion_tokens = 0;
    bool operator==(const Usage&) const = default;
};
/// `n` answers to each prompt, in this order.
Usage usage_of(const std::vector<JobTimings>& timings, size_t n);
nlohmann::ordered_json usage_json(const Usage& usage);

/// llama-server's "timings". Those of several answers are added up.
nlohmann::ordered_json timings_json(const JobTimings& timings);
JobTimings sum_of(const std::vector<JobTimings>& timings);

/// OpenAI's finish_reason: "stop", "length"; `calls`: the answer calls tools.
std::string_view finish_reason_text(FinishReason reason, bool calls = false);
/// llama-server's stop_type: "eos", "word", "limit".
std::string_view stop_type_text(FinishReason reason);

/// `prefix` and 32 random letters and digits.
std::string random_id(std::string_view prefix);

/// One token: its id, text, bytes, log probability, and the likeliest ones of its step.
nlohmann::ordered_json token_probs_json(const TokenOutput& token, const Tokenizer& tokenizer,
                                        bool special);
/// A list of them.
nlohmann::ordered_json all_token_probs_json(const std::vector<TokenOutput>& tokens,
                                            const Tokenizer& tokenizer, bool special);

/// As text that is valid UTF-8 whatever is in it.
std::string json_text(const nlohmann::ordered_json& value);
/// One event of a stream: "data: ...\n\n".
std::string event_text(const nlohmann::ordered_json& value);

}  // namespace pleat
