#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace pleat {

/// The steps that narrow or reshape the candidates before one of them is drawn.
enum class SamplerKind : uint8_t {
    penalties,
    dry,
    top_n_sigma,
    top_k,
    typ_p,
    top_p,
    min_p,
    xtc,
    temperature,
    infill,
    adaptive_p,  ///< draws the token itself, so it always comes last
};

struct LogitBias {
    int32_t token = 0;
    float bias = 0.0F;  ///< added to the logit; minus infinity forbids the token
    bool operator==(const LogitBias&) const = default;
};

/// What the text must look like: GBNF from `root` on. With triggers the grammar sleeps until one of
/// them appears in the text; it then has to fit from the beginning of that trigger on.
struct GrammarConstraint {
    std::string text{};  ///< empty: none
    std::string root = "root";
    std::vector<std::string> triggers{};  ///< plain texts; empty: from the first token on
    bool operator==(const GrammarConstraint&) const = default;
};

/// How tokens are drawn. Names, defaults and meaning are llama.cpp's of the libllama we build
/// against (0.7): `llama-completion --help`.
struct SamplingParams {
    static constexpr uint32_t random_seed = 0xFFFFFFFF;

    uint32_t seed = random_seed;
    int32_t min_keep = 0;  ///< candidates that top_p, min_p, typ_p and xtc leave at least
    int32_t top_k = 40;    ///< <= 0: off
    float top_p = 0.95F;   ///< 1: off
    float min_p = 0.05F;   ///< 0: off
    float typical_p = 1.0F;
    float top_n_sigma = -1.0F;  ///< <= 0: off
    float xtc_probability = 0.0F;
    float xtc_threshold = 0.1F;  ///< > 0.5: off
    float temp = 0.8F;           ///< <= 0: greedy, the candidate with the greatest logit
    float dynatemp_range = 0.0F;
    float dynatemp_exponent = 1.0F;
    int32_t penalty_last_n = 64;  ///< tokens looked back at; 0: off
    float penalty_repeat = 1.0F;
    float penalty_freq = 0.0F;
    float penalty_present = 0.0F;
    float dry_multiplier = 0.0F;  ///< 0: off
    float dry_base = 1.75F;
    int32_t dry_allowed_length = 2;
    int32_t dry_penalty_last_n = 64;
    std::vector<std::string> dry_sequence_breakers{"\n", ":", "\"", "*"};
    float adaptive_target = -1.0F;
    float adaptive_decay = 0.9F;
    int32_t mirostat = 0;  ///< 1 and 2 take the place of all samplers but temperature
    float mirostat_tau = 5.0F;
    float mirostat_eta = 0.1F;
    std::vector<SamplerKind> samplers{
        SamplerKind::penalties, SamplerKind::dry,   SamplerKind::top_n_sigma,
        SamplerKind::top_k,     SamplerKind::typ_p, SamplerKind::top_p,
        SamplerKind::min_p,     SamplerKind::xtc,   SamplerKind::temperature};
    std::vector<LogitBias> logit_bias{};
    bool ignore_eos = false;  ///< no token that would end the text is ever drawn
    GrammarConstraint constraint{};

    bool operator==(const SamplingParams&) const = default;
};

/// "top_k;temperature" for --samplers. Throws Error that lists the names.
std::vector<SamplerKind> parse_samplers(std::string_view names);
/// One letter each, "kt" for --sampling-seq. Throws Error that lists the letters.
std::vector<SamplerKind> parse_sampling_sequence(std::string_view letters);
std::string_view sampler_name(SamplerKind kind);

/// "15043+1", "15043-0.5", "15043-inf" for --logit-bias. Throws Error.
LogitBias parse_logit_bias(std::string_view text);

/// Throws Error that names the flag of a parameter out of its range, or of a token that the
/// vocabulary does not have. Ranges are such that no finite logit can become infinite or NaN on
/// the way. Does not look at the grammar.
void check_sampling_params(const SamplingParams& params, const Tokenizer& tokenizer);

}  // namespace pleat
