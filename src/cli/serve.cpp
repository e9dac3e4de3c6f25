#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "chat/chat_format.h"
#include "cli/commands.h"
#include "cli/llama_server_flags.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/plan_report.h"
#include "cli/serve_options.h"
#include "cli/shutdown.h"
#include "serve/api.h"
#include "serve/engine.h"
#include "serve/http_server.h"
#include "text/sampler.h"
#include "text/tokenizer.h"

namespace pleat::cli {
namespace {

/// Less than other commands': a prompt is run in chunks of this size between the steps of others.
constexpr uint32_t default_n_ubatch = 128;

/// How long the last words to clients may take after the drain timeout.
constexpr std::chrono::milliseconds farewell_time{1000};

/// The server's own thread: it listens from the start, so that a taken port is said before the
/// weights are read, and clients that come early are told to wait.
class Listening {
  public:
    explicit Listening(HttpServer& server)
        : server_(server), thread_([this] {
              server_.listen();
              const std::lock_guard lock(mutex_);
              ended_ = true;
              changed_.notify_all();
          }) {}
    ~Listening() {
        server_.abort();
        thread_.join();
    }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

    void wait() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return ended_; });
    }
    bool wait(std::chrono::milliseconds patience) {
        std::unique_lock lock(mutex_);
        return changed_.wait_for(lock, patience, [&] { return ended_; });
    }

  private:
    HttpServer& server_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool ended_ = false;
    std::thread thread_;
};

void print_warnings(const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

/// One line, whatever a client sent.
std::string on_one_line(const std::string& text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void print_request(const HttpLogEntry& entry) {
    fmt::print(stderr, "{} {} {} {} {:.1f} ms{}\n", entry.client,
               entry.method.empty() ? "-" : entry.method, entry.path.empty() ? "-" : entry.path,
               entry.status, entry.milliseconds,
               entry.body.empty() ? "" : " " + on_one_line(entry.body));
}

std::vector<std::string> size_warnings(const CacheSettings& cache) {
    if (cache.n_cells() == cache.n_ctx) return {};
    return {fmt::format("a context of {} tokens (-c) becomes {}: caches are made in steps of 256",
                        cache.n_ctx, cache.n_cells())};
}

std::vector<std::string> access_warnings(const HttpServer& server, const HttpSettings& settings) {
    if (server.loopback() || !settings.api_keys.empty()) return {};
    return {fmt::format(
        "other machines may use this server without a key (--host {}): --api-key-file asks for one",
        settings.host)};
}

struct ServeCommand {
    ModelArgument model;
    PlanOptions plan;
    ContextOptions context{default_n_ubatch};
    ServingOptions serving;
    HttpOptions http;
    LlamaServerFlags others;

    std::string model_path() const {
        const std::string named = model.given() ? std::string() : model_of_environment();
        return named.empty() ? model.model() : named;
    }

    HttpSettings http_settings() const {
        HttpSettings settings = http.settings();
        settings.log_bodies = http.log_prompts();
        if (!context.quiet()) settings.log = print_request;
        settings.log_error = [](const std::string& line) {
            fmt::print(stderr, "error: {}\n", line);
        };
        return settings;
    }

    std::vector<VariantSettings> variants(const Model& opened) const {
        std::vector<VariantSettings> result;
        for (const auto& [name, spec] : serving.variants()) {
            result.push_back(
                {.name = name, .plan = plan.resolve_spec(spec, "--variant " + name, opened)});
        }
        if (!result.empty() && plan.given()) {
            fail("--variant goes with no plan flag: each variant says its own plan");
        }
        if (result.empty()) result.push_back({.name = {}, .plan = plan.resolve(opened)});
        return result;
    }

    void print_load_log(const Model& opened, const std::vector<VariantSettings>& all,
                        const CacheSettings& cache) const {
        if (context.quiet()) return;
        for (const VariantSettings& variant : all) {
            if (!variant.name.empty()) fmt::print(stderr, "variant: {}\n", variant.name);
            fmt::print(stderr, "{}", load_log(variant.plan, opened.shape(), cache));
        }
    }

    void run() const {
        // What can be wrong in the flags is said before any weight is read.
        std::vector<std::string> warnings = others.warnings();
        for (const std::string& more : unread_llama_environment()) warnings.push_back(more);
        for (const std::string& more : context.warnings()) warnings.push_back(more);
        const HttpSettings settings = http_settings();
        ApiSettings api_settings = serving.api_settings();
        api_settings.model_path = model_path();
        api_settings.version = PLEAT_VERSION;
        const std::shared_ptr<Model> opened =
            open_model(api_settings.model_path, context.model_options());
        const EngineSettings engine_settings =
            serving.engine_settings(context.settings(opened->shape()));
        std::vector<VariantSettings> all = variants(*opened);
        const Tokenizer tokenizer = Tokenizer::open(api_settings.model_path);
        { const Sampler checked(api_settings.sampling, tokenizer); }
        const ChatFormat format(tokenizer, serving.chat_template());
        for (const std::string& more : format.warnings()) warnings.push_back(more);
        for (const std::string& more : size_warnings(engine_settings.context.cache)) {
            warnings.push_back(more);
        }
        if (!context.quiet()) print_warnings(warnings);
        print_load_log(*opened, all, engine_settings.context.cache);

        HttpServer server(settings);
        server.bind();
        if (!context.quiet()) print_warnings(access_warnings(server, settings));
        std::unique_ptr<Engine> engine;
        std::unique_ptr<Api> api;
        Listening listening(server);
        std::atomic<Engine*> running = nullptr;
        const ShutdownSignals signals([&] { drain(server, listening, running); });
        load_backends_from_environment();
        try {
            engine = std::make_unique<Engine>(
                opened, tokenizer, std::move(all), engine_settings,
                [&signals, bar = progress_bar(context.quiet())](float fraction) {
                    return !signals.seen() && (!bar || bar(fraction));
                });
        } catch (const Error&) {
            if (signals.seen()) return;  // asked to end before there was anything to serve
            throw;
        }
        running.store(engine.get());
        api = std::make_unique<Api>(*engine, tokenizer, format, std::move(api_settings));
        api->add_routes(server);
        server.ready();
        fmt::print(stderr, "listening on {}\n", server.url());
        listening.wait();
    }

    /// What is under way may end, in its time.
    void drain(HttpServer& server, Listening& listening,
               const std::atomic<Engine*>& running) const {
        if (!context.quiet()) {
            fmt::print(stderr, "stopping; a second signal ends it at once\n");
        }
        server.stop();
        if (listening.wait(http.drain_time())) return;
        fmt::print(stderr, "warning: {} connections did not end in time and are cut\n",
                   server.n_connections());
        // Clients are told so, unless they do not listen.
        if (Engine* const engine = running.load()) engine->stop();
        if (listening.wait(farewell_time)) return;
        server.abort();
        if (listening.wait(farewell_time)) return;
        fmt::print(stderr, "warning: a request that is still worked on is given up\n");
        std::_Exit(EXIT_SUCCESS);  // its thread cannot be waited for
    }
};

}  // namespace

void add_serve(CLI::App& app) {
    auto command = std::make_shared<ServeCommand>();
    CLI::App* const sub =
        app.add_subcommand("serve", "Serve one or several plans of a model over HTTP");
    command->model.add(*sub);
    command->plan.add(*sub);
    command->serving.add(*sub);
    command->http.add(*sub);
    command->context.add(*sub);
    command->others.add(*sub);
    sub->set_version_flag("--version", std::string("pleat ") + PLEAT_VERSION)->group("");
    read_llama_environment(*sub);
    sub->footer(
        "The endpoints are OpenAI's and llama-server's: docs/serve.md, docs/api.md.\n"
        "Examples:\n"
        "  pleat serve model.gguf --repeat-layers \"26,34\" --port 8080\n"
        "  pleat serve model.gguf --variant base= --variant \"deep=26,34\" --variant "
        "\"lean=drop:3,7,12\" -np 4\n"
        "  pleat serve model.gguf --host 0.0.0.0 --api-key-file keys.txt -c 8192\n"
        "  curl http://127.0.0.1:8080/v1/chat/completions -H \"Content-Type: application/json\" "
        "\\\n"
        "    -d '{\"messages\": [{\"role\": \"user\", \"content\": \"Hello\"}]}'");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
