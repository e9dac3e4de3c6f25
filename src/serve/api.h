#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "chat/chat_format.h"
#include "serve/engine.h"
#include "serve/limits.h"
#include "text/sampling_params.h"
#include "text/tokenizer.h"

namespace pleat {

class HttpServer;

/// What requests are answered with where they say nothing, and what the server tells of itself.
struct ApiSettings {
    std::string model_path = {};
    /// With one plan: its name in answers; empty: the file's name. Variants go by their own names.
    std::string alias = {};
    std::string version = {};      ///< of Pleat, without the name
    SamplingParams sampling = {};  ///< of requests that do not say
    int32_t n_predict = -1;        ///< likewise; negative: as many as the context holds
    ReasoningFormat reasoning = ReasoningFormat::separate;
    bool continue_answers = true;  ///< as ChatRequest::continue_answer
    nlohmann::ordered_json template_arguments = nlohmann::ordered_json::object();
    bool show_prompts = false;  ///< /slots tells what is being asked
    bool slots = true;          ///< /slots is there
    bool metrics = true;        ///< /metrics is there
    RequestLimits limits = {};
};

/// The endpoints (docs/api.md): JSON to jobs for the engine, and what becomes of them back to JSON.
/// Called from many threads at once, none of which computes. What it was made of must outlive it,
/// and it must outlive the server that it adds its routes to.
class Api {
  public:
    /// Throws Error when a default is out of range.
    Api(Engine& engine, const Tokenizer& tokenizer, const ChatFormat& format, ApiSettings settings);
    ~Api();
    Api(const Api&) = delete;
    Api& operator=(const Api&) = delete;

    void add_routes(HttpServer& server);

  private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace pleat
