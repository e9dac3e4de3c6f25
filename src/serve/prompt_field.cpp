#include "serve/prompt_field.h"

#include <algorithm>
#include <limits>

namespace pleat {
namespace {

using nlohmann::ordered_json;

bool holds_token(const ordered_json& list) {
    return std::ranges::any_of(list, [](const ordered_json& it) { return it.is_number(); });
}

/// The prompts of one field.
class PromptReader {
  public:
    PromptReader(const PromptTokenizer& tokenizer, const ClientGone& gone)
        : tokenizer_(tokenizer), gone_(gone) {}

    std::vector<int32_t> read(const ordered_json& value, const std::string& param) const {
        std::vector<int32_t> tokens;
        if (value.is_string()) {
            tokens = of_text(value.get_ref<const std::string&>(), param);
        } else if (value.is_array()) {
            tokens = of_list(value, param);
        } else if (value.is_object()) {
            const Fields fields(value, param);
            const auto text = fields.text("prompt_string");
            if (!text) refuse_field(fields.param("prompt_string"), "is missing");
            if (fields.has("multimodal_data")) {
                refuse_field(fields.param("multimodal_data"), "is not offered: only text is");
            }
            tokens = of_text(*text, param);
        } else {
            refuse_field(param, "must be a text, a list of tokens and texts, or a list of prompts");
        }
        if (tokens.empty()) refuse_field(param, "must not be empty");
        return tokens;
    }

  private:
    int32_t token_of(const ordered_json& value, const std::string& param) const {
        const int64_t token = as_integer(value, param, std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max());
        const int32_t n_vocab = tokenizer_.tokenizer().n_vocab();
        if (token < 0 || token >= n_vocab) {
            refuse_field(
                param, fmt::format("there is no token {}; the vocabulary has {}", token, n_vocab));
        }
        return static_cast<int32_t>(token);
    }

    /// Its end token is not part of what is to be continued, whatever the file says.
    std::vector<int32_t> of_text(const std::string& text, const std::string& param) const {
        if (text.empty() && !tokenizer_.tokenizer().add_bos()) {
            refuse_field(param, "is empty, and this model has no token to begin with");
        }
        return of_field(param, [&] { return tokenizer_.beginning(text, gone_); });
    }

    std::vector<int32_t> of_list(const ordered_json& list, const std::string& param) const {
        std::vector<int32_t> tokens;
        bool first = true;
        for (const ordered_json& part : list) {
            if (part.is_string()) {
                const std::string& text = part.get_ref<const std::string&>();
                const std::vector<int32_t> more = of_field(param, [&] {
                    return first ? of_text(text, param)
                                 : tokenizer_.continuation(text, tokens.size(), gone_);
                });
                tokens.insert(tokens.end(), more.begin(), more.end());
            } else {
                tokens.push_back(token_of(part, param));
            }
            first = false;
        }
        return tokens;
    }

    const PromptTokenizer& tokenizer_;
    const ClientGone& gone_;
};

}  // namespace

bool has_several_prompts(const ordered_json& value) {
    return value.is_array() && !holds_token(value) && value.size() > 1;
}

std::vector<std::vector<int32_t>> prompt_field(const ordered_json& value, const std::string& param,
                                               const PromptTokenizer& tokenizer,
                                               const ClientGone& gone,
                                               const RequestLimits& limits) {
    const PromptReader reader(tokenizer, gone);
    if (!value.is_array() || holds_token(value)) return {reader.read(value, param)};
    if (value.empty()) refuse_field(param, "must not be empty");
    std::vector<std::vector<int32_t>> prompts;
    for (const ordered_json& element : as_array(value, param, limits.prompts)) {
        prompts.push_back(reader.read(element, fmt::format("{}[{}]", param, prompts.size())));
    }
    return prompts;
}

}  // namespace pleat
