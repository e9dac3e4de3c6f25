#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/prompt_tokenizer.h"
#include "serve/request_fields.h"

namespace pleat {

/// The prompts of a field, each as tokens: a text, a list of tokens, a list of texts and tokens
/// mixed, {"prompt_string": text}, or a list of several of these. As in llama-server a list that
/// holds a token is one prompt, and one of texts only is several. A text that begins a prompt gets
/// the tokens that the file wants before it. Throws RequestError (400) that names the field, and as
/// PromptTokenizer does.
std::vector<std::vector<int32_t>> prompt_field(const nlohmann::ordered_json& value,
                                               const std::string& param,
                                               const PromptTokenizer& tokenizer,
                                               const ClientGone& gone, const RequestLimits& limits);

/// Is it several prompts? Then llama-server answers with a list.
bool has_several_prompts(const nlohmann::ordered_json& value);

}  // namespace pleat
