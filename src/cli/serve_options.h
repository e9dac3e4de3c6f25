#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/sampling_options.h"
#include "serve/api.h"
#include "serve/engine.h"
#include "serve/http_settings.h"

namespace pleat::cli {

/// Who may connect, from the flags and the key file.
class HttpOptions {
  public:
    void add(CLI::App& app);
    /// Throws Error for keys and names that cannot be.
    HttpSettings settings() const;
    std::chrono::milliseconds drain_time() const;
    bool log_prompts() const { return log_prompts_; }

  private:
    void add_access(CLI::App& app);
    void add_limits(CLI::App& app);
    std::vector<std::string> api_keys() const;

    std::string host_ = "127.0.0.1";
    int port_ = 8080;
    std::vector<std::string> api_keys_;
    std::string api_key_file_;
    std::vector<std::string> cors_origins_;
    std::vector<std::string> allowed_hosts_;
    size_t max_connections_ = HttpSettings{}.max_connections;
    size_t max_body_mib_ = HttpSettings{}.max_body_bytes >> 20;
    double header_seconds_ = 10.0;
    double idle_seconds_ = 30.0;
    double timeout_seconds_ = 60.0;
    double drain_seconds_ = 30.0;
    bool log_prompts_ = false;
};

/// What is served, how many at once, and what a request gets that does not say.
class ServingOptions {
  public:
    void add(CLI::App& app);

    /// NAME=SPEC of each --variant, in their order; names are checked and unique.
    std::vector<std::pair<std::string, std::string>> variants() const;
    /// All but the context. Throws Error.
    EngineSettings engine_settings(ContextSettings context) const;
    /// All but the file and the version.
    ApiSettings api_settings() const;
    /// The chat template to use instead of the file's; empty: none.
    std::string chat_template() const;

  private:
    void add_slots(CLI::App& app);
    void add_answers(CLI::App& app);

    std::vector<std::string> variants_;
    std::string alias_;
    int n_parallel_ = 4;
    size_t queue_ = EngineSettings{}.queue;
    bool deterministic_ = false;
    size_t n_snapshots_ = EngineSettings{}.n_snapshots;
    float slot_similarity_ = EngineSettings{}.slot_similarity;
    std::string pooling_;
    std::string chat_template_;
    std::string chat_template_file_;
    std::string chat_template_kwargs_;
    std::string reasoning_format_ = "auto";
    std::string reasoning_ = "auto";
    bool prefill_assistant_ = true;
    bool show_prompts_ = false;
    bool slots_ = true;
    bool metrics_ = true;
    int32_t n_predict_ = -1;
    SamplingOptions sampling_;
};

}  // namespace pleat::cli
