#include "serve/api.h"

#include <httplib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "serve/api_state.h"
#include "serve/http_server.h"
#include "serve/metrics.h"
#include "serve/request_fields.h"
#include "serve/server_state.h"

namespace pleat {
namespace {

using httplib::Request;
using httplib::Response;
using nlohmann::ordered_json;

/// Known to clients of llama-server or OpenAI, and not offered.
constexpr std::array<const char*, 14> refused_paths{
    "/infill",       "/rerank",        "/reranking",   "/v1/rerank",
    "/v1/reranking", "/props",         "/slots/:id",   "/lora-adapters",
    "/v1/responses", "/responses",     "/v1/messages", "/v1/audio/transcriptions",
    "/models/load",  "/models/unload",
};

}  // namespace

class Api::Impl {
  public:
    Impl(Engine& engine, const Tokenizer& tokenizer, const ChatFormat& format, ApiSettings settings)
        : state_(engine, tokenizer, format, std::move(settings)) {}

    void add_routes(HttpServer& server) {
        add_generation(server);
        add_texts(server);
        add_state(server);
        for (const char* const path : refused_paths) {
            server.post(path, [](const Request& request, Response&) {
                throw RequestError(501, fmt::format("{} is not offered", request.path));
            });
        }
    }

  private:
    using Endpoint = void (*)(ApiState&, const Fields&, const Request&, Response&);

    /// An endpoint that takes a JSON object, under all its paths.
    void post(HttpServer& server, std::initializer_list<const char*> paths, Endpoint endpoint) {
        for (const char* const path : paths) {
            server.post(path, [this, endpoint](const Request& request, Response& response) {
                const ordered_json body = parse_body(request.body, state_.settings.limits);
                endpoint(state_, Fields(body), request, response);
            });
        }
    }

    void add_generation(HttpServer& server) {
        post(server, {"/completion", "/completions"}, answer_completion);
        post(server, {"/v1/completions"}, answer_text_completion);
        post(server, {"/v1/chat/completions", "/chat/completions"}, answer_chat);
        post(server, {"/v1/embeddings"}, answer_openai_embeddings);
        post(server, {"/embeddings", "/embedding"}, answer_embeddings);
    }

    void add_texts(HttpServer& server) {
        post(server, {"/apply-template"}, answer_template);
        post(server, {"/tokenize"},
             [](ApiState& state, const Fields& fields, const Request& request, Response& response) {
                 answer_json(response, tokenize_json(fields, state.context(request)));
             });
        post(server, {"/detokenize"},
             [](ApiState& state, const Fields& fields, const Request&, Response& response) {
                 answer_json(response, detokenize_json(fields, state.tokenizer));
             });
    }

    void add_state(HttpServer& server) {
        for (const char* const path : {"/health", "/v1/health"}) {
            server.get(path, [](const Request&, Response& response) {
                answer_json(response, {{"status", "ok"}});
            });
        }
        for (const char* const path : {"/v1/models", "/models"}) {
            server.get(path, [this](const Request&, Response& response) {
                answer_json(response,
                            model_list_json(state_.engine, state_.models, state_.created));
            });
        }
        server.get("/v1/models/:model", [this](const Request& request, Response& response) {
            answer_model(request.path_params.at("model"), response);
        });
        server.get("/props",
                   [this](const Request&, Response& response) { answer_props(response); });
        if (state_.settings.slots) {
            server.get("/slots", [this](const Request& request, Response& response) {
                answer_slots(request, response);
            });
        }
        if (state_.settings.metrics) {
            server.get("/metrics", [this](const Request&, Response& response) {
                response.set_content(metrics_text(metrics_input()),
                                     "text/plain; version=0.0.4; charset=utf-8");
            });
        }
    }

    void answer_model(std::string_view name, Response& response) {
        const size_t variant = state_.models.find(name);
        answer_json(response,
                    model_json(state_.models.name(variant), state_.engine.context(variant),
                               state_.engine.n_ctx(), state_.created));
    }

    void answer_props(Response& response) {
        const ApiSettings& settings = state_.settings;
        answer_json(response, props_json({.version = settings.version,
                                          .model_path = settings.model_path,
                                          .chat_template = state_.format.template_text(),
                                          .tool_form = std::string(state_.format.tool_form()),
                                          .slots = settings.slots,
                                          .metrics = settings.metrics,
                                          .n_predict = settings.n_predict,
                                          .sampling = settings.sampling},
                                         state_.engine, state_.models, state_.tokenizer));
    }

    void answer_slots(const Request& request, Response& response) {
        const std::vector<SlotState> slots = state_.engine.slots();
        const bool all_busy = std::ranges::all_of(slots, &SlotState::busy);
        if (all_busy && request.has_param("fail_on_no_slot")) {
            throw RequestError(503, "no server slot is free");
        }
        answer_json(response, slots_json(slots, state_.models, state_.tokenizer,
                                         state_.engine.n_ctx(), state_.settings.show_prompts));
    }

    MetricsInput metrics_input() const {
        const Engine& engine = state_.engine;
        MetricsInput input{.counters = engine.counters(),
                           .slots = engine.slots(),
                           .weight_bytes = engine.context(0).model().loaded_bytes(),
                           .n_tokens_max = state_.n_tokens_max()};
        for (size_t i = 0; i < engine.n_variants(); ++i) {
            const Context& context = engine.context(i);
            input.variants.push_back({.name = state_.models.name(i),
                                      .plan = context.plan().canonical(),
                                      .plan_hash = context.plan().hash(),
                                      .cache_bytes = context.cache_bytes()});
        }
        return input;
    }

    ApiState state_;
};

Api::Api(Engine& engine, const Tokenizer& tokenizer, const ChatFormat& format, ApiSettings settings)
    : impl_(std::make_unique<Impl>(engine, tokenizer, format, std::move(settings))) {}

Api::~Api() = default;

void Api::add_routes(HttpServer& server) { impl_->add_routes(server); }

}  // namespace pleat
