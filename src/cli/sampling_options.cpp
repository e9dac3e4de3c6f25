#include "cli/sampling_options.h"

#include <fmt/format.h>

#include "cli/escapes.h"
#include "cli/text_file.h"

namespace pleat::cli {
namespace {

const std::string group = "Sampling";

/// The default is written by fmt: CLI11 shows 0.95F as 0.9.
template <typename T>
void option(CLI::App& app, const char* names, T& target, const char* help) {
    app.add_option(names, target, help)->default_str(fmt::format("{}", target))->group(group);
}

/// For flags that may be given several times, one value each.
void list(CLI::App& app, const char* names, std::vector<std::string>& target, const char* help) {
    app.add_option(names, target, help)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group(group);
}

}  // namespace

void SamplingOptions::add(CLI::App& app) {
    app.add_option("-s,--seed", seed_, "Seed of the random numbers; -1 = a new one each time")
        ->check(CLI::Range(int64_t{-1}, int64_t{UINT32_MAX}))
        ->capture_default_str()
        ->group(group);
    option(app, "--temp,--temperature", params_.temp, "Temperature; 0 = always the likeliest");
    option(app, "--top-k", params_.top_k, "Keep the k likeliest tokens; 0 = all");
    option(app, "--top-p", params_.top_p, "Keep the likeliest tokens that sum to p; 1 = all");
    option(app, "--min-p", params_.min_p, "Keep tokens of at least p times the best; 0 = all");
    option(app, "--typical,--typical-p", params_.typical_p, "Locally typical sampling; 1 = off");
    option(app, "--top-nsigma,--top-n-sigma", params_.top_n_sigma,
           "Keep logits within n standard deviations of the best; -1 = all");
    option(app, "--xtc-probability", params_.xtc_probability, "XTC: how often it acts; 0 = never");
    option(app, "--xtc-threshold", params_.xtc_threshold, "XTC: threshold; above 0.5 = off");
    option(app, "--dynatemp-range", params_.dynatemp_range, "Dynamic temperature: range; 0 = off");
    option(app, "--dynatemp-exp", params_.dynatemp_exponent, "Dynamic temperature: exponent");
    option(app, "--mirostat", params_.mirostat, "Mirostat 1 or 2, instead of the others; 0 = off");
    option(app, "--mirostat-lr", params_.mirostat_eta, "Mirostat: learning rate (eta)");
    option(app, "--mirostat-ent", params_.mirostat_tau, "Mirostat: target entropy (tau)");
    option(app, "--adaptive-target", params_.adaptive_target,
           "Adaptive-p: the probability to aim at; negative = off");
    option(app, "--adaptive-decay", params_.adaptive_decay, "Adaptive-p: decay of its history");
    add_penalties(app);
    CLI::Option* const samplers =
        app.add_option("--samplers", samplers_,
                       "The samplers in their order, as in \"top_k;top_p;temperature\" (default: "
                       "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature)");
    samplers->group(group);
    app.add_option("--sampling-seq,--sampler-seq", sequence_,
                   "The same by letters, as in \"kpt\" (default: edskypmxt)")
        ->excludes(samplers)
        ->group(group);
    list(app, "-l,--logit-bias", logit_bias_,
         "TOKEN_ID+BIAS or TOKEN_ID-BIAS, added to that token's logit; -inf forbids it");
    app.add_flag("--ignore-eos", params_.ignore_eos, "Never draw a token that ends the text")
        ->group(group);
    add_grammar(app);
}

void SamplingOptions::add_penalties(CLI::App& app) {
    option(app, "--repeat-penalty", params_.penalty_repeat, "Penalty on repeated tokens; 1 = off");
    option(app, "--repeat-last-n", params_.penalty_last_n, "Tokens it looks back at; 0 = off");
    option(app, "--presence-penalty", params_.penalty_present, "Penalty on tokens seen; 0 = off");
    option(app, "--frequency-penalty", params_.penalty_freq, "Penalty per occurrence; 0 = off");
    option(app, "--dry-multiplier", params_.dry_multiplier, "DRY: multiplier; 0 = off");
    option(app, "--dry-base", params_.dry_base, "DRY: base");
    option(app, "--dry-allowed-length", params_.dry_allowed_length, "DRY: repetition allowed");
    option(app, "--dry-penalty-last-n", params_.dry_penalty_last_n,
           "DRY: tokens it looks back at; 0 = off");
    list(app, "--dry-sequence-breaker", dry_breakers_,
         "DRY: a text over which no repetition counts, instead of the default ones; \"none\" = no "
         "such text");
}

void SamplingOptions::add_grammar(CLI::App& app) {
    CLI::Option* const grammar = app.add_option("--grammar", params_.constraint.text,
                                                "A grammar (GBNF) that the text has to follow");
    grammar->group(group);
    app.add_option("--grammar-file", grammar_file_, "The same from a file")
        ->excludes(grammar)
        ->group(group);
}

SamplingParams SamplingOptions::params() const {
    SamplingParams params = params_;
    params.seed = seed_ < 0 ? SamplingParams::random_seed : static_cast<uint32_t>(seed_);
    if (!samplers_.empty()) params.samplers = parse_samplers(samplers_);
    if (!sequence_.empty()) params.samplers = parse_sampling_sequence(sequence_);
    for (const std::string& text : logit_bias_) {
        params.logit_bias.push_back(parse_logit_bias(text));
    }
    if (!dry_breakers_.empty()) params.dry_sequence_breakers.clear();
    for (const std::string& breaker : dry_breakers_) {
        if (breaker == "none") {
            params.dry_sequence_breakers.clear();
        } else {
            params.dry_sequence_breakers.push_back(process_escapes(breaker));
        }
    }
    if (!grammar_file_.empty())
        params.constraint.text = read_text_file(grammar_file_, "the grammar");
    return params;
}

}  // namespace pleat::cli
