#include "serve/generation_request.h"

#include <algorithm>
#include <limits>

#include "serve/sampling_fields.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

constexpr int32_t any_int = std::numeric_limits<int32_t>::max();

std::vector<std::string> stop_field(const Fields& fields, const RequestLimits& limits) {
    const ordered_json* const value = fields.find("stop");
    if (value == nullptr) return {};
    std::vector<std::string> stops;
    if (value->is_string()) {
        stops.push_back(value->get<std::string>());
    } else {
        stops = fields.texts("stop", limits.stops).value_or(stops);
    }
    for (const std::string& stop : stops) {
        if (stop.size() > limits.stop_bytes) {
            refuse_field(fields.param("stop"), fmt::format("a text has {} bytes, at most {}",
                                                           stop.size(), limits.stop_bytes));
        }
    }
    std::erase(stops, "");  // would end before the first character
    return stops;
}

/// llama-server's name goes before OpenAI's two.
int32_t n_predict_field(const Fields& fields, int32_t otherwise) {
    std::optional<int64_t> first;
    for (const std::string_view name : {"n_predict", "max_completion_tokens", "max_tokens"}) {
        const auto value = fields.integer(name, -1, any_int);
        if (!first) first = value;
    }
    return static_cast<int32_t>(first.value_or(otherwise));
}

bool include_usage_field(const Fields& fields, bool stream) {
    const ordered_json* const value = fields.find("stream_options");
    if (value == nullptr) return false;
    const Fields options(*value, fields.param("stream_options"));
    if (!stream) refuse_field(fields.param("stream_options"), "is only allowed with stream");
    return options.boolean("include_usage", false);
}

}  // namespace

GenerationRequest generation_request(const Fields& fields, const RequestContext& context) {
    const RequestLimits& limits = context.limits;
    GenerationRequest request;
    request.variant = context.models.find(fields);
    request.generation.sampling =
        sampling_fields(fields, context.sampling, context.tokenizer, context.n_ctx, limits);
    request.generation.n_predict = n_predict_field(fields, context.n_predict);
    request.generation.stops = stop_field(fields, limits);
    for (const std::string_view name : {"n", "n_cmpl"}) {
        const auto n = fields.integer(name, 1, limits.n);
        if (n) request.n = static_cast<int32_t>(*n);
    }
    request.stream = fields.boolean("stream", false);
    request.include_usage = include_usage_field(fields, request.stream);
    const auto n_probs = fields.integer("n_probs", 0, limits.n_probs).value_or(0);
    request.n_probs = n_probs > 0 ? static_cast<int>(n_probs) : -1;
    request.cache_prompt = fields.boolean("cache_prompt", true);
    request.slot = static_cast<int32_t>(fields.integer("id_slot", -1, any_int).value_or(-1));
    const int64_t milliseconds = fields.integer("t_max_predict_ms", -1, any_int).value_or(0);
    request.time_limit = std::chrono::milliseconds(std::max<int64_t>(milliseconds, 0));
    request.return_tokens = fields.boolean("return_tokens", false);
    request.timings_per_token = fields.boolean("timings_per_token", false);
    request.response_fields = fields.texts("response_fields", limits.response_fields)
                                  .value_or(std::vector<std::string>());
    return request;
}

void check_prompt_fits(size_t n_prompt, uint32_t n_ctx) {
    if (n_prompt < n_ctx) return;
    throw RequestError(
        400,
        fmt::format("the prompt has {} tokens, and the context holds {}, of which at least one is "
                    "for the answer",
                    n_prompt, n_ctx),
        {}, "exceed_context_size_error", {{"n_prompt_tokens", n_prompt}, {"n_ctx", n_ctx}});
}

std::vector<std::shared_ptr<Job>> make_jobs(const GenerationRequest& request,
                                            const std::vector<std::vector<int32_t>>& prompts,
                                            const RequestContext& context) {
    const size_t n = static_cast<size_t>(request.n) * prompts.size();
    if (n > context.limits.choices) {
        throw RequestError(400,
                           fmt::format("n: {} answers to {} prompts, at most {} in all", request.n,
                                       prompts.size(), context.limits.choices),
                           "n");
    }
    std::vector<std::shared_ptr<Job>> jobs;
    for (const std::vector<int32_t>& prompt : prompts) {
        check_prompt_fits(prompt.size(), context.n_ctx);
        for (int32_t i = 0; i < request.n; ++i) {
            JobRequest job{.variant = request.variant,
                           .prompt = prompt,
                           .generation = request.generation,
                           .n_probs = request.n_probs,
                           .cache_prompt = request.cache_prompt,
                           .slot = request.slot,
                           .time_limit = request.time_limit};
            uint32_t& seed = job.generation.sampling.seed;
            if (seed != SamplingParams::random_seed) {
                const uint64_t sum = uint64_t{seed} + static_cast<uint64_t>(i);
                seed = static_cast<uint32_t>(sum % SamplingParams::random_seed);
            }
            jobs.push_back(std::make_shared<Job>(std::move(job)));
        }
    }
    return jobs;
}

ordered_json generation_settings_json(const GenerationParams& params, int n_probs, bool stream) {
    ordered_json settings = sampling_json(params.sampling);
    ordered_json biases = ordered_json::array();
    for (const LogitBias& bias : params.sampling.logit_bias) {
        // JSON has no infinity.
        ordered_json value =
            std::isfinite(bias.bias) ? ordered_json(bias.bias) : ordered_json(false);
        biases.push_back({{"bias", std::move(value)}, {"token", bias.token}});
    }
    settings["stop"] = params.stops;
    settings["max_tokens"] = params.n_predict;
    settings["n_predict"] = params.n_predict;
    settings["n_keep"] = 0;
    settings["n_discard"] = 0;
    settings["stream"] = stream;
    settings["logit_bias"] = std::move(biases);
    settings["n_probs"] = std::max(n_probs, 0);
    settings["grammar"] = params.sampling.constraint.text;
    settings["timings_per_token"] = false;
    settings["post_sampling_probs"] = false;
    settings["lora"] = ordered_json::array();
    return settings;
}

}  // namespace pleat
