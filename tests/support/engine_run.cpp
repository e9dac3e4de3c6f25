#include "support/engine_run.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

#include "arch/registry.h"
#include "base/error.h"
#include "plan/spec.h"
#include "support/stock.h"

namespace pleat::test {
namespace {

bool same_prob(const TokenProb& a, const TokenProb& b) {
    return a.token == b.token &&
           std::bit_cast<uint32_t>(a.logprob) == std::bit_cast<uint32_t>(b.logprob);
}

}  // namespace

std::vector<int32_t> Answer::ids() const {
    std::vector<int32_t> ids;
    for (const TokenOutput& token : tokens) ids.push_back(token.drawn.token);
    return ids;
}

void PrintTo(const Answer& answer, std::ostream* out) {
    *out << finish_reason_name(answer.result.reason) << ' ' << answer.result.error << " cached "
         << answer.result.timings.n_cached << ':';
    for (const TokenOutput& token : answer.tokens) {
        *out << ' ' << token.drawn.token << '(' << token.drawn.logprob << ')';
    }
}

bool same_answer(const Answer& a, const Answer& b) {
    const auto same_output = [](const TokenOutput& x, const TokenOutput& y) {
        return same_prob(x.drawn, y.drawn) && std::ranges::equal(x.top, y.top, same_prob);
    };
    return a.text == b.text && a.result.reason == b.result.reason &&
           a.result.error == b.result.error && std::ranges::equal(a.tokens, b.tokens, same_output);
}

EngineRun::EngineRun(const std::string& path, const EngineSettings& settings,
                     const std::vector<std::string>& plans)
    : tokenizer_((start_stock(), Tokenizer::open(path))) {
    const std::shared_ptr<Model> model = open_model(path);
    std::vector<VariantSettings> variants;
    for (const std::string& plan : plans) {
        variants.push_back({.name = "v" + std::to_string(variants.size()),
                            .plan = LayerPlan::resolve(parse_spec(plan), model->shape())});
    }
    engine_ = std::make_unique<Engine>(model, tokenizer_, std::move(variants), settings);
}

std::vector<Answer> EngineRun::run(const std::vector<JobRequest>& requests) {
    std::vector<std::shared_ptr<Job>> jobs;
    for (const JobRequest& request : requests) jobs.push_back(std::make_shared<Job>(request));
    if (!engine_->submit(jobs)) fail("the queue is full");
    std::vector<Answer> answers;
    for (const auto& job : jobs) answers.push_back(wait_for(*job));
    return answers;
}

Answer wait_for(Job& job) {
    Answer answer;
    for (bool last = false; !last;) {
        auto event = job.next(std::chrono::minutes(1));
        if (!event) fail("nothing came of a job for a minute");
        answer.text += event->text;
        for (TokenOutput& token : event->tokens) answer.tokens.push_back(std::move(token));
        last = event->last;
    }
    answer.result = job.result();
    return answer;
}

EngineSettings engine_settings(uint32_t n_slots, uint32_t n_ctx, uint32_t chunk) {
    EngineSettings settings;
    settings.context.cache.n_ctx = n_ctx;
    settings.context.cache.n_seq = n_slots;
    settings.context.cache.n_ubatch = chunk;
    return settings;
}

JobRequest greedy(std::vector<int32_t> prompt, int32_t n_predict) {
    JobRequest request;
    request.prompt = std::move(prompt);
    request.generation.sampling.temp = 0.0F;
    request.generation.sampling.ignore_eos = true;
    request.generation.n_predict = n_predict;
    request.n_probs = 2;
    return request;
}

}  // namespace pleat::test
