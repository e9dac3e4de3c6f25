#include "text/sampler.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <string>
#include <utility>

#include "base/error.h"
#include "text/free_text.h"
#include "text/grammar.h"
#include "text/llama_log.h"
#include "text/utf8_stream.h"

namespace pleat {
namespace {

constexpr float forbidden = -std::numeric_limits<float>::infinity();

/// No model means a greater one; up to here no parameter in its range can make it infinite.
constexpr float greatest_logit = 1e20F;

llama_sampler_ptr made(llama_sampler* sampler, std::string_view what) {
    if (!sampler) fail("libllama gives no sampler for {}", what);
    return llama_sampler_ptr(sampler);
}

llama_sampler_ptr make_bias(const SamplingParams& params, const Tokenizer& tokenizer) {
    std::vector<llama_logit_bias> biases;
    for (const LogitBias& bias : params.logit_bias) biases.push_back({bias.token, bias.bias});
    if (params.ignore_eos) {
        for (const int32_t token : tokenizer.eog_tokens()) biases.push_back({token, forbidden});
    }
    for (const int32_t token : tokenizer.suppressed_tokens()) biases.push_back({token, forbidden});
    if (biases.empty()) return {};
    return made(llama_sampler_init_logit_bias(tokenizer.n_vocab(),
                                              static_cast<int32_t>(biases.size()), biases.data()),
                "logit bias");
}

llama_sampler_ptr make_grammar(const SamplingParams& params, const Tokenizer& tokenizer) {
    GrammarConstraint constraint = params.constraint;
    if (constraint.text.empty()) return {};
    check_grammar(constraint.text, constraint.root, tokenizer);
    if (!constraint.triggers.empty()) {
        constraint = eager_constraint(constraint);
        check_grammar(constraint.text, constraint.root, tokenizer);
    }
    const LlamaLog log;
    llama_sampler_ptr grammar(llama_sampler_init_grammar(tokenizer.vocab(), constraint.text.c_str(),
                                                         constraint.root.c_str()));
    if (!grammar) fail("grammar: {}", log.reason("libllama gives no reason"));
    return grammar;
}

llama_sampler_ptr make_dry(const SamplingParams& p, const Tokenizer& tokenizer) {
    std::vector<const char*> breakers;
    for (const std::string& breaker : p.dry_sequence_breakers) breakers.push_back(breaker.c_str());
    return made(llama_sampler_init_dry(tokenizer.vocab(), p.dry_multiplier, p.dry_base,
                                       p.dry_allowed_length, p.dry_penalty_last_n, breakers.data(),
                                       breakers.size()),
                "dry");
}

llama_sampler_ptr make_step(SamplerKind kind, const SamplingParams& p, const Tokenizer& tokenizer) {
    const auto min_keep = static_cast<size_t>(p.min_keep);
    const std::string_view name = sampler_name(kind);
    switch (kind) {
        case SamplerKind::penalties:
            return made(
                llama_sampler_init_penalties(tokenizer.n_vocab(), p.penalty_last_n,
                                             p.penalty_repeat, p.penalty_freq, p.penalty_present),
                name);
        case SamplerKind::dry:
            return make_dry(p, tokenizer);
        case SamplerKind::top_n_sigma:
            return made(llama_sampler_init_top_n_sigma(p.top_n_sigma), name);
        case SamplerKind::top_k:
            return made(llama_sampler_init_top_k(p.top_k), name);
        case SamplerKind::typ_p:
            return made(llama_sampler_init_typical(p.typical_p, min_keep), name);
        case SamplerKind::top_p:
            return made(llama_sampler_init_top_p(p.top_p, min_keep), name);
        case SamplerKind::min_p:
            return made(llama_sampler_init_min_p(p.min_p, min_keep), name);
        case SamplerKind::xtc:
            return made(
                llama_sampler_init_xtc(p.xtc_probability, p.xtc_threshold, min_keep, p.seed), name);
        case SamplerKind::temperature:
            return made(llama_sampler_init_temp_ext(p.temp, p.dynatemp_range, p.dynatemp_exponent),
                        name);
        case SamplerKind::infill:
            return made(llama_sampler_init_infill(tokenizer.vocab()), name);
        case SamplerKind::adaptive_p:
            return made(llama_sampler_init_adaptive_p(p.adaptive_target, p.adaptive_decay, p.seed),
                        name);
    }
    fail("unknown sampler {}", static_cast<int>(kind));
}

llama_sampler_ptr make_chain(const SamplingParams& p, const Tokenizer& tokenizer) {
    llama_sampler_ptr chain =
        made(llama_sampler_chain_init(llama_sampler_chain_default_params()), "the chain");
    const auto add = [&](llama_sampler_ptr step) {
        llama_sampler_chain_add(chain.get(), step.release());
    };
    if (p.mirostat != 0) {
        add(made(llama_sampler_init_temp(p.temp), "temperature"));
        // 100 is the number of candidates from which the paper's estimate is made, as in stock.
        add(made(p.mirostat == 1
                     ? llama_sampler_init_mirostat(tokenizer.n_vocab(), p.seed, p.mirostat_tau,
                                                   p.mirostat_eta, 100)
                     : llama_sampler_init_mirostat_v2(p.seed, p.mirostat_tau, p.mirostat_eta),
                 "mirostat"));
        return chain;
    }
    bool adaptive = false;
    for (const SamplerKind kind : p.samplers) {
        if (kind == SamplerKind::adaptive_p) {
            adaptive = true;
        } else {
            add(make_step(kind, p, tokenizer));
        }
    }
    add(adaptive ? make_step(SamplerKind::adaptive_p, p, tokenizer)
                 : made(llama_sampler_init_dist(p.seed), "the distribution"));
    return chain;
}

/// For messages: short, on one line, whatever bytes the token has.
std::string quoted_piece(const Tokenizer& tokenizer, int32_t token) {
    std::string text = to_utf8(tokenizer.piece(token, true));
    std::ranges::replace_if(
        text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    return text;
}

}  // namespace

Sampler::Sampler(const SamplingParams& params, const Tokenizer& tokenizer)
    : tokenizer_(tokenizer), candidates_(static_cast<size_t>(tokenizer.n_vocab())) {
    check_sampling_params(params, tokenizer);
    try {
        bias_ = make_bias(params, tokenizer);
        grammar_ = make_grammar(params, tokenizer);
        chain_ = make_chain(params, tokenizer);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        fail("cannot make the samplers: {}", e.what());
    }
}

int32_t Sampler::sample(std::span<const float> logits) {
    if (logits.size() != candidates_.size()) {
        fail("{} logits for a vocabulary of {} tokens", logits.size(), candidates_.size());
    }
    if (grammar_lost_) fail("the grammar was left by the last token; reset the sampler");
    for (size_t i = 0; i < logits.size(); ++i) {
        // Sorting by NaN is undefined, and an infinite logit makes every probability NaN.
        if (!(logits[i] <= greatest_logit)) {
            fail("the logit of token {} is {}: the model's computation has broken down", i,
                 logits[i]);
        }
    }
    logits_ = logits;
    try {
        if (!grammar_) return draw(false);
        const int32_t free = draw(false);
        return fits_grammar(free) ? free : draw(true);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        fail("cannot sample: {}", e.what());
    }
}

int32_t Sampler::draw(bool constrain) {
    const auto load = [&] {
        for (size_t i = 0; i < logits_.size(); ++i) {
            candidates_[i] = {static_cast<int32_t>(i), logits_[i], 0.0F};
        }
        llama_token_data_array array{candidates_.data(), candidates_.size(), -1, false};
        if (constrain) llama_sampler_apply(grammar_.get(), &array);
        if (bias_) llama_sampler_apply(bias_.get(), &array);
        check_any_left(constrain);
        return array;
    };
    llama_token_data_array array = load();
    llama_sampler_apply(chain_.get(), &array);
    if (array.selected >= 0 && static_cast<size_t>(array.selected) < array.size) {
        const llama_token_data& chosen = array.data[array.selected];
        if (std::isfinite(chosen.logit)) return chosen.id;
    }
    // A temperature so close to zero that logits overflowed, or penalties that left nothing: the
    // limit of both is the greatest logit.
    load();
    return std::ranges::max_element(candidates_, {}, &llama_token_data::logit)->id;
}

void Sampler::check_any_left(bool constrained) const {
    if (std::ranges::any_of(candidates_,
                            [](const llama_token_data& c) { return c.logit > forbidden; })) {
        return;
    }
    if (constrained) {
        fail(
            "no token is left to sample: the grammar allows none here, or only ones that a logit "
            "bias or ignored ends of the text forbid");
    }
    fail("no token is left to sample: all logits are minus infinity");
}

bool Sampler::fits_grammar(int32_t token) const {
    if (!grammar_) return true;
    if (grammar_lost_ || !tokenizer_.valid(token)) return false;
    llama_token_data one{token, 1.0F, 0.0F};
    llama_token_data_array array{&one, 1, -1, false};
    llama_sampler_apply(grammar_.get(), &array);
    return one.logit != forbidden;
}

void Sampler::require_valid(int32_t token) const {
    if (!tokenizer_.valid(token)) {
        fail("token {} is not in the vocabulary of {}", token, tokenizer_.n_vocab());
    }
}

void Sampler::accept(int32_t token) {
    require_valid(token);
    if (grammar_) {
        // libllama ends the process on an end token inside of a grammar.
        if (!fits_grammar(token)) {
            fail("token {} (\"{}\") does not fit the grammar here{}", token,
                 quoted_piece(tokenizer_, token),
                 tokenizer_.is_eog(token) ? ", which is not complete" : "");
        }
        try {
            llama_sampler_accept(grammar_.get(), token);
        } catch (const std::exception&) {
            // libllama's test of a token and its step over it differ where a grammar asks for a
            // token by its number inside of text; the step has then already lost its state.
            grammar_lost_ = true;
            fail("token {} (\"{}\") leaves the grammar", token, quoted_piece(tokenizer_, token));
        }
    }
    llama_sampler_accept(chain_.get(), token);
}

void Sampler::accept_prompt(int32_t token) {
    require_valid(token);
    llama_sampler_accept(chain_.get(), token);
}

void Sampler::reset() {
    if (grammar_) {
        const LlamaLog log;
        llama_sampler_reset(grammar_.get());
    }
    llama_sampler_reset(chain_.get());
    grammar_lost_ = false;
}

}  // namespace pleat
