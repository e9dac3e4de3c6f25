#include "serve/api_state.h"

#include <httplib.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace pleat {
namespace {

int64_t seconds_now() {
    const auto since_1970 = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::seconds>(since_1970).count();
}

std::vector<std::string> variant_names(const Engine& engine, const ApiSettings& settings) {
    std::vector<std::string> names;
    for (size_t i = 0; i < engine.n_variants(); ++i) names.push_back(engine.variant(i).name);
    if (names.size() == 1 && !settings.alias.empty()) names[0] = settings.alias;
    if (names.size() == 1 && names[0].empty()) names[0] = model_name_of_path(settings.model_path);
    return names;
}

}  // namespace

ApiState::ApiState(Engine& engine_, const Tokenizer& tokenizer_, const ChatFormat& format_,
                   ApiSettings settings_)
    : engine(engine_),
      tokenizer(tokenizer_),
      format(format_),
      settings(std::move(settings_)),
      models(variant_names(engine, settings)),
      prompt_tokenizer(tokenizer, engine.n_ctx(), [this] { return engine.stopping(); }),
      created(seconds_now()) {
    check_sampling_params(settings.sampling, tokenizer);
}

RequestContext ApiState::context() const {
    return {.tokenizer = tokenizer,
            .prompts = prompt_tokenizer,
            .models = models,
            .sampling = settings.sampling,
            .n_predict = settings.n_predict,
            .n_ctx = engine.n_ctx(),
            .limits = settings.limits};
}

RequestContext ApiState::context(const httplib::Request& request) const {
    RequestContext result = context();
    result.gone = request.is_connection_closed;
    return result;
}

AnswerHead ApiState::head(size_t variant, std::string_view id_prefix) const {
    return {.id = random_id(id_prefix),
            .created = seconds_now(),
            .model = models.name(variant),
            .fingerprint = fmt::format("pleat-{}-{}", settings.version,
                                       engine.context(variant).plan().hash())};
}

std::shared_ptr<JobGroup> ApiState::submit(const GenerationRequest& request,
                                           const std::vector<std::vector<int32_t>>& prompts) const {
    const auto n_slots =
        static_cast<int32_t>(engine.context(request.variant).settings().cache.n_seq);
    if (request.slot >= n_slots) {
        refuse_field("id_slot", fmt::format("there is no server slot {}; there are {} from 0 on",
                                            request.slot, n_slots));
    }
    return JobGroup::submit(engine, make_jobs(request, prompts, context()));
}

void ApiState::note_lengths(const JobGroup& group) {
    for (const JobTimings& timings : group.timings()) {
        const uint64_t n = timings.n_prompt + timings.n_predicted;
        uint64_t before = n_tokens_max_.load(std::memory_order_relaxed);
        while (before < n && !n_tokens_max_.compare_exchange_weak(before, n)) {
        }
    }
}

void answer_json(httplib::Response& response, const nlohmann::ordered_json& value) {
    response.set_content(json_text(value), "application/json; charset=utf-8");
}

}  // namespace pleat
