#include "text/sampling_params.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "base/error.h"

namespace pleat {
namespace {

struct SamplerRow {
    SamplerKind kind;
    char letter;
    std::string_view name;
    std::array<std::string_view, 4> aliases;
};

/// In the order of the kinds, so that a kind is its row's index.
constexpr std::array<SamplerRow, 11> sampler_rows{{
    {SamplerKind::penalties, 'e', "penalties", {}},
    {SamplerKind::dry, 'd', "dry", {}},
    {SamplerKind::top_n_sigma, 's', "top_n_sigma", {"top-n-sigma"}},
    {SamplerKind::top_k, 'k', "top_k", {"top-k"}},
    {SamplerKind::typ_p, 'y', "typ_p", {"typ-p", "typ", "typical", "typical-p"}},
    {SamplerKind::top_p, 'p', "top_p", {"top-p", "nucleus"}},
    {SamplerKind::min_p, 'm', "min_p", {"min-p"}},
    {SamplerKind::xtc, 'x', "xtc", {}},
    {SamplerKind::temperature, 't', "temperature", {"temp"}},
    {SamplerKind::infill, 'i', "infill", {}},
    {SamplerKind::adaptive_p, 'a', "adaptive_p", {"adaptive-p"}},
}};

bool has_name(const SamplerRow& row, std::string_view name) {
    if (row.name == name) return true;
    for (const std::string_view alias : row.aliases) {
        if (!name.empty() && alias == name) return true;
    }
    return false;
}

template <typename Match>
std::optional<SamplerKind> find_kind(Match match) {
    for (const SamplerRow& row : sampler_rows) {
        if (match(row)) return row.kind;
    }
    return std::nullopt;
}

std::optional<float> parse_float(std::string_view text) {
    if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
    float value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return value;
}

void check_range(std::string_view flag, float value, float low, float high) {
    if (value >= low && value <= high) return;  // false for NaN
    fail("{} {}: must be between {} and {}", flag, value, low, high);
}

void check_range(std::string_view flag, int32_t value, int32_t low, int32_t high) {
    if (value >= low && value <= high) return;
    fail("{} {}: must be between {} and {}", flag, value, low, high);
}

constexpr float any = 1e6F;
constexpr int32_t longest_history = 1'000'000;

void check_history(const SamplingParams& p) {
    check_range("--repeat-last-n", p.penalty_last_n, 0, longest_history);
    check_range("--repeat-penalty", p.penalty_repeat, 0.01F, 100.0F);
    check_range("--frequency-penalty", p.penalty_freq, -any, any);
    check_range("--presence-penalty", p.penalty_present, -any, any);
    check_range("--dry-multiplier", p.dry_multiplier, 0.0F, any);
    check_range("--dry-base", p.dry_base, 0.0F, any);
    check_range("--dry-allowed-length", p.dry_allowed_length, 0, longest_history);
    check_range("--dry-penalty-last-n", p.dry_penalty_last_n, 0, longest_history);
    if (p.dry_sequence_breakers.size() > 64) {
        fail("--dry-sequence-breaker: {} of them, at most 64", p.dry_sequence_breakers.size());
    }
    for (const std::string& breaker : p.dry_sequence_breakers) {
        if (breaker.empty() || breaker.size() > 40 || breaker.find('\0') != std::string::npos) {
            fail("--dry-sequence-breaker: {} bytes; must be 1 to 40, none of them zero",
                 breaker.size());
        }
    }
}

void check_candidates(const SamplingParams& p) {
    constexpr float max = std::numeric_limits<float>::max();
    check_range("--min-keep", p.min_keep, 0, std::numeric_limits<int32_t>::max());
    check_range("--top-p", p.top_p, 0.0F, 1.0F);
    check_range("--min-p", p.min_p, 0.0F, 1.0F);
    check_range("--typical-p", p.typical_p, 0.0F, 1.0F);
    check_range("--top-n-sigma", p.top_n_sigma, -any, any);
    check_range("--xtc-probability", p.xtc_probability, 0.0F, 1.0F);
    check_range("--xtc-threshold", p.xtc_threshold, 0.0F, 1.0F);
    check_range("--temp", p.temp, -max, max);
    check_range("--dynatemp-range", p.dynatemp_range, 0.0F, any);
    check_range("--dynatemp-exp", p.dynatemp_exponent, 0.0F, any);
    check_range("--adaptive-target", p.adaptive_target, -any, 1.0F);
    check_range("--adaptive-decay", p.adaptive_decay, 0.0F, 0.99F);
    check_range("--mirostat", p.mirostat, 0, 2);
    check_range("--mirostat-ent", p.mirostat_tau, 0.0F, any);
    check_range("--mirostat-lr", p.mirostat_eta, 0.0F, any);
}

}  // namespace

std::string_view sampler_name(SamplerKind kind) {
    return sampler_rows[static_cast<size_t>(kind)].name;
}

std::vector<SamplerKind> parse_samplers(std::string_view names) {
    std::vector<SamplerKind> kinds;
    while (!names.empty()) {
        const std::string_view name = names.substr(0, names.find(';'));
        names.remove_prefix(std::min(names.size(), name.size() + 1));
        const auto kind = find_kind([&](const SamplerRow& row) { return has_name(row, name); });
        if (!kind) {
            std::vector<std::string_view> valid;
            for (const SamplerRow& row : sampler_rows) valid.push_back(row.name);
            fail("--samplers: no sampler is named \"{}\"; there are {}", name,
                 fmt::join(valid, ", "));
        }
        kinds.push_back(*kind);
    }
    return kinds;
}

std::vector<SamplerKind> parse_sampling_sequence(std::string_view letters) {
    std::vector<SamplerKind> kinds;
    for (const char letter : letters) {
        const auto kind = find_kind([&](const SamplerRow& row) { return row.letter == letter; });
        if (!kind) {
            std::vector<std::string> valid;
            for (const SamplerRow& row : sampler_rows) {
                valid.push_back(fmt::format("{} {}", row.letter, row.name));
            }
            fail("--sampling-seq: no sampler has the letter \"{}\"; there are {}", letter,
                 fmt::join(valid, ", "));
        }
        kinds.push_back(*kind);
    }
    return kinds;
}

LogitBias parse_logit_bias(std::string_view text) {
    LogitBias result;
    const auto [end, status] =
        std::from_chars(text.data(), text.data() + text.size(), result.token);
    const std::string_view rest = text.substr(static_cast<size_t>(end - text.data()));
    const std::optional<float> bias = parse_float(rest);
    if (status != std::errc() || !bias || (rest[0] != '+' && rest[0] != '-')) {
        fail("--logit-bias \"{}\": must be a token's number and a signed number, as in 15043+1",
             text);
    }
    result.bias = *bias;
    return result;
}

void check_sampling_params(const SamplingParams& params, const Tokenizer& tokenizer) {
    check_candidates(params);
    check_history(params);
    if (params.samplers.size() > 64) {
        fail("--samplers: {} of them, at most 64", params.samplers.size());
    }
    for (const SamplerKind kind : params.samplers) {
        // libllama ends the process when it has to fall back to an end token that is not there.
        if (kind == SamplerKind::infill && tokenizer.eot() == Tokenizer::no_token &&
            tokenizer.eos() == Tokenizer::no_token) {
            fail("--samplers: infill needs an end token, and this vocabulary has none");
        }
    }
    for (const LogitBias& bias : params.logit_bias) {
        if (!tokenizer.valid(bias.token)) {
            fail("--logit-bias: token {} is not in the vocabulary of {}", bias.token,
                 tokenizer.n_vocab());
        }
        if (bias.bias == -std::numeric_limits<float>::infinity()) continue;
        check_range("--logit-bias", bias.bias, -any, any);
    }
}

}  // namespace pleat
