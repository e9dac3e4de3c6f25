#include "serve/sampling_fields.h"

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <variant>

namespace pleat {
namespace {

using nlohmann::ordered_json;

constexpr double any = 1e6;  // no finite logit becomes infinite on the way
constexpr double longest_history = 1'000'000;
constexpr double any_int = std::numeric_limits<int32_t>::max();

/// A number of the samplers. Whole ones that look back may be -1: at all tokens.
struct NumberRow {
    std::string_view name;
    std::variant<float SamplingParams::*, int32_t SamplingParams::*> member;
    double low;
    double high;
};

/// In the order in which llama-server tells its settings.
constexpr std::array<NumberRow, 24> number_rows{{
    {"temperature", &SamplingParams::temp, -any, any},
    {"dynatemp_range", &SamplingParams::dynatemp_range, 0, any},
    {"dynatemp_exponent", &SamplingParams::dynatemp_exponent, 0, any},
    {"top_k", &SamplingParams::top_k, -any_int, any_int},
    {"top_p", &SamplingParams::top_p, 0, 1},
    {"min_p", &SamplingParams::min_p, 0, 1},
    {"top_n_sigma", &SamplingParams::top_n_sigma, -any, any},
    {"xtc_probability", &SamplingParams::xtc_probability, 0, 1},
    {"xtc_threshold", &SamplingParams::xtc_threshold, 0, 1},
    {"typical_p", &SamplingParams::typical_p, 0, 1},
    {"repeat_last_n", &SamplingParams::penalty_last_n, -1, longest_history},
    {"repeat_penalty", &SamplingParams::penalty_repeat, 0.01, 100},
    {"presence_penalty", &SamplingParams::penalty_present, -any, any},
    {"frequency_penalty", &SamplingParams::penalty_freq, -any, any},
    {"dry_multiplier", &SamplingParams::dry_multiplier, 0, any},
    {"dry_base", &SamplingParams::dry_base, 0, any},
    {"dry_allowed_length", &SamplingParams::dry_allowed_length, 0, longest_history},
    {"dry_penalty_last_n", &SamplingParams::dry_penalty_last_n, -1, longest_history},
    {"mirostat", &SamplingParams::mirostat, 0, 2},
    {"mirostat_tau", &SamplingParams::mirostat_tau, 0, any},
    {"mirostat_eta", &SamplingParams::mirostat_eta, 0, any},
    {"adaptive_target", &SamplingParams::adaptive_target, -any, 1},
    {"adaptive_decay", &SamplingParams::adaptive_decay, 0, 0.99},
    {"min_keep", &SamplingParams::min_keep, 0, any_int},
}};

void read_number(const NumberRow& row, const Fields& fields, SamplingParams& params) {
    if (const auto* real = std::get_if<float SamplingParams::*>(&row.member)) {
        const auto value = fields.number(row.name, row.low, row.high);
        if (value) params.** real = static_cast<float>(*value);
        return;
    }
    const auto value =
        fields.integer(row.name, static_cast<int64_t>(row.low), static_cast<int64_t>(row.high));
    if (value)
        params.*std::get<int32_t SamplingParams::*>(row.member) = static_cast<int32_t>(*value);
}

/// OpenAI's seeds have 64 bits, the samplers' 32, all ones of which mean a random one.
uint32_t seed_of(int64_t value) {
    if (value == -1) return SamplingParams::random_seed;
    if (value >= 0 && value <= SamplingParams::random_seed) return static_cast<uint32_t>(value);
    return static_cast<uint32_t>(static_cast<uint64_t>(value) % SamplingParams::random_seed);
}

/// What is wrong with a flag of the same meaning, without the flag's name.
std::string reason_of(const Error& error) {
    const std::string_view text = error.what();
    const size_t colon = text.starts_with("--") ? text.find(": ") : std::string_view::npos;
    return std::string(colon == std::string_view::npos ? text : text.substr(colon + 2));
}

/// ["top_k", "temperature"], or a letter for each: "kt".
std::vector<SamplerKind> samplers_field(const ordered_json& value, const std::string& param) {
    constexpr size_t most = 64;
    std::vector<SamplerKind> kinds;
    try {
        if (value.is_string()) {
            kinds = parse_sampling_sequence(as_text(value, param));
        } else {
            for (const ordered_json& element : as_array(value, param, most)) {
                const std::string& name =
                    as_text(element, fmt::format("{}[{}]", param, kinds.size()));
                kinds.push_back(parse_samplers(name.empty() ? "\"\"" : name).at(0));
            }
        }
    } catch (const RequestError&) {
        throw;
    } catch (const Error& e) {
        refuse_field(param, reason_of(e));
    }
    if (kinds.size() > most) {
        refuse_field(param, fmt::format("{} of them, at most {}", kinds.size(), most));
    }
    return kinds;
}

void check_breakers(const std::vector<std::string>& breakers, const std::string& param) {
    if (breakers.empty()) refuse_field(param, "must have at least one text");
    for (const std::string& breaker : breakers) {
        constexpr size_t longest = 40;
        if (breaker.empty() || breaker.size() > longest ||
            breaker.find('\0') != std::string::npos) {
            refuse_field(param, fmt::format("a text has {} bytes; must have 1 to {}, none of them "
                                            "zero",
                                            breaker.size(), longest));
        }
    }
}

/// Adds the biases that one entry stands for.
class LogitBiasReader {
  public:
    LogitBiasReader(const Tokenizer& tokenizer, const RequestLimits& limits, std::string param)
        : tokenizer_(tokenizer), limits_(limits), param_(std::move(param)) {}

    void read_object(const ordered_json& object) {
        for (const auto& [key, value] : object.items()) {
            const float bias = bias_of(value);
            int64_t token = 0;
            const char* const last = key.data() + key.size();
            const auto [end, status] = std::from_chars(key.data(), last, token);
            if (status == std::errc() && end == last) {
                add(token, bias);
            } else {
                add(key, bias);
            }
        }
    }

    void read_array(const ordered_json& array) {
        for (const ordered_json& pair : as_array(array, param_, limits_.logit_biases)) {
            if (!pair.is_array() || pair.size() != 2) {
                refuse_field(param_, "an entry must be a pair of a token and its bias");
            }
            const float bias = bias_of(pair[1]);
            if (pair[0].is_string()) {
                add(pair[0].get_ref<const std::string&>(), bias);
            } else {
                add(as_integer(pair[0], param_, INT32_MIN, INT32_MAX), bias);
            }
        }
    }

    std::vector<LogitBias> take() { return std::move(biases_); }

  private:
    float bias_of(const ordered_json& value) const {
        if (value.is_boolean() && !value.get<bool>()) {
            return -std::numeric_limits<float>::infinity();
        }
        if (!value.is_number()) refuse_field(param_, "a bias must be a number or false");
        return static_cast<float>(as_number(value, param_, -any, any));
    }

    void add(int64_t token, float bias) {
        if (token < 0 || token >= tokenizer_.n_vocab()) {
            refuse_field(param_, fmt::format("there is no token {}; the vocabulary has {}", token,
                                             tokenizer_.n_vocab()));
        }
        if (biases_.size() >= limits_.logit_biases) {
            refuse_field(param_, fmt::format("more than {} tokens", limits_.logit_biases));
        }
        biases_.push_back({.token = static_cast<int32_t>(token), .bias = bias});
    }

    void add(const std::string& text, float bias) {
        if (text.size() > limits_.logit_bias_bytes) {
            refuse_field(param_, fmt::format("a text has {} bytes, at most {}", text.size(),
                                             limits_.logit_bias_bytes));
        }
        for (const int32_t token : tokenizer_.tokenize(text, false, false)) add(token, bias);
    }

    const Tokenizer& tokenizer_;
    const RequestLimits& limits_;
    std::string param_;
    std::vector<LogitBias> biases_;
};

}  // namespace

std::vector<LogitBias> logit_bias_field(const Fields& fields, const Tokenizer& tokenizer,
                                        const RequestLimits& limits) {
    const ordered_json* const value = fields.find("logit_bias");
    if (value == nullptr) return {};
    LogitBiasReader reader(tokenizer, limits, fields.param("logit_bias"));
    if (value->is_object()) {
        reader.read_object(*value);
    } else {
        reader.read_array(*value);
    }
    return reader.take();
}

SamplingParams sampling_fields(const Fields& fields, const SamplingParams& defaults,
                               const Tokenizer& tokenizer, uint32_t n_ctx,
                               const RequestLimits& limits) {
    SamplingParams params = defaults;
    for (const NumberRow& row : number_rows) read_number(row, fields, params);
    for (int32_t* last_n : {&params.penalty_last_n, &params.dry_penalty_last_n}) {
        if (*last_n < 0) *last_n = static_cast<int32_t>(n_ctx);
    }
    const auto seed = fields.integer("seed", std::numeric_limits<int64_t>::min(),
                                     std::numeric_limits<int64_t>::max());
    if (seed) params.seed = seed_of(*seed);
    if (const ordered_json* const samplers = fields.find("samplers")) {
        params.samplers = samplers_field(*samplers, fields.param("samplers"));
    }
    constexpr size_t most_breakers = 64;
    if (auto breakers = fields.texts("dry_sequence_breakers", most_breakers)) {
        check_breakers(*breakers, fields.param("dry_sequence_breakers"));
        params.dry_sequence_breakers = std::move(*breakers);
    }
    if (fields.has("logit_bias")) {
        params.logit_bias = logit_bias_field(fields, tokenizer, limits);
    }
    params.ignore_eos = fields.boolean("ignore_eos", params.ignore_eos);
    return params;
}

ordered_json sampling_json(const SamplingParams& params) {
    ordered_json result = {{"seed", params.seed}};
    for (const NumberRow& row : number_rows) {
        std::visit([&](auto member) { result[std::string(row.name)] = params.*member; },
                   row.member);
    }
    result["dry_sequence_breakers"] = params.dry_sequence_breakers;
    result["ignore_eos"] = params.ignore_eos;
    ordered_json& samplers = result["samplers"] = ordered_json::array();
    for (const SamplerKind kind : params.samplers) samplers.push_back(sampler_name(kind));
    return result;
}

}  // namespace pleat
