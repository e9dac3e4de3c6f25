#include "serve/prompt_field.h"

#include <algorithm>
#include <limits>

#include "generate/prompt.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

bool holds_token(const ordered_json& list) {
    return std::ranges::any_of(list, [](const ordered_json& it) { return it.is_number(); });
}

int32_t token_of(const ordered_json& value, const std::string& param, const Tokenizer& tokenizer) {
    const int64_t token = as_integer(value, param, std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max());
    if (token < 0 || token >= tokenizer.n_vocab()) {
        refuse_field(param, fmt::format("there is no token {}; the vocabulary has {}", token,
                                        tokenizer.n_vocab()));
    }
    return static_cast<int32_t>(token);
}

/// Its end token is not part of what is to be continued, whatever the file says.
std::vector<int32_t> tokens_of_text(const std::string& text, const std::string& param,
                                    const Tokenizer& tokenizer) {
    if (text.empty() && !tokenizer.add_bos()) {
        refuse_field(param, "is empty, and this model has no token to begin with");
    }
    return of_field(param, [&] { return prompt_tokens(tokenizer, text); });
}

std::vector<int32_t> tokens_of_list(const ordered_json& list, const std::string& param,
                                    const Tokenizer& tokenizer) {
    std::vector<int32_t> tokens;
    bool first = true;
    for (const ordered_json& part : list) {
        if (part.is_string()) {
            const std::string& text = part.get_ref<const std::string&>();
            const std::vector<int32_t> more = of_field(param, [&] {
                return first ? tokens_of_text(text, param, tokenizer)
                             : tokenizer.tokenize(text, false, true);
            });
            tokens.insert(tokens.end(), more.begin(), more.end());
        } else {
            tokens.push_back(token_of(part, param, tokenizer));
        }
        first = false;
    }
    return tokens;
}

std::vector<int32_t> one_prompt(const ordered_json& value, const std::string& param,
                                const Tokenizer& tokenizer) {
    std::vector<int32_t> tokens;
    if (value.is_string()) {
        tokens = tokens_of_text(value.get_ref<const std::string&>(), param, tokenizer);
    } else if (value.is_array()) {
        tokens = tokens_of_list(value, param, tokenizer);
    } else if (value.is_object()) {
        const Fields fields(value, param);
        const auto text = fields.text("prompt_string");
        if (!text) refuse_field(fields.param("prompt_string"), "is missing");
        if (fields.has("multimodal_data")) {
            refuse_field(fields.param("multimodal_data"), "is not offered: only text is");
        }
        tokens = tokens_of_text(*text, param, tokenizer);
    } else {
        refuse_field(param, "must be a text, a list of tokens and texts, or a list of prompts");
    }
    if (tokens.empty()) refuse_field(param, "must not be empty");
    return tokens;
}

}  // namespace

bool has_several_prompts(const ordered_json& value) {
    return value.is_array() && !holds_token(value) && value.size() > 1;
}

std::vector<std::vector<int32_t>> prompt_field(const ordered_json& value, const std::string& param,
                                               const Tokenizer& tokenizer,
                                               const RequestLimits& limits) {
    if (!value.is_array() || holds_token(value)) return {one_prompt(value, param, tokenizer)};
    if (value.empty()) refuse_field(param, "must not be empty");
    std::vector<std::vector<int32_t>> prompts;
    for (const ordered_json& element : as_array(value, param, limits.prompts)) {
        prompts.push_back(
            one_prompt(element, fmt::format("{}[{}]", param, prompts.size()), tokenizer));
    }
    return prompts;
}

}  // namespace pleat
