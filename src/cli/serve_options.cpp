#include "cli/serve_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string_view>

#include "base/error.h"
#include "cli/numbers.h"
#include "cli/text_file.h"

namespace pleat::cli {
namespace {

/// For flags that may be given several times, one value each.
CLI::Option* list(CLI::App& app, const char* names, std::vector<std::string>& target,
                  const char* help) {
    return app.add_option(names, target, help)
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

/// "a,b" in any of the texts: the parts, without empty ones.
std::vector<std::string> split_at_commas(const std::vector<std::string>& texts) {
    std::vector<std::string> parts;
    for (const std::string& text : texts) {
        std::istringstream stream(text);
        for (std::string part; std::getline(stream, part, ',');) {
            if (!part.empty()) parts.push_back(part);
        }
    }
    return parts;
}

void check_key(const std::string& key, std::string_view from) {
    const auto fit = [](char c) { return c > ' ' && c < '\x7f'; };
    if (key.empty() || !std::ranges::all_of(key, fit)) {
        fail("{}: a key is of printable ASCII without spaces, since it goes into an HTTP header",
             from);
    }
}

/// As browsers send it: a scheme and a host, no path.
void check_origin(const std::string& origin) {
    if (origin == "*" || origin == "localhost" || origin == "null") return;
    const size_t scheme = origin.find("://");
    const std::string_view host = scheme == std::string::npos
                                      ? std::string_view()
                                      : std::string_view(origin).substr(scheme + 3);
    if (scheme != 0 && !host.empty() && host.find_first_of("/?#@ ") == std::string_view::npos) {
        return;
    }
    fail(
        "--cors-origin {}: no web page has this origin; expected a scheme and a host without a "
        "path, such as https://chat.example or http://127.0.0.1:3000, or localhost, or *",
        origin);
}

std::chrono::milliseconds milliseconds(double seconds) {
    return std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000.0));
}

void seconds(CLI::App& app, const char* name, double& target, const char* help) {
    app.add_option(name, target, help)
        ->check(CLI::Range(0.001, 86'400.0))
        ->default_str(fmt::format("{}", target))
        ->group("Connections");
}

Pooling pooling_of_name(const std::string& name) {
    for (const Pooling pooling : {Pooling::none, Pooling::mean, Pooling::cls, Pooling::last}) {
        if (pooling_name(pooling) == name) return pooling;
    }
    fail("--pooling {}: expected none, mean, cls or last", name);
}

nlohmann::ordered_json template_arguments(const std::string& text) {
    if (text.empty()) return nlohmann::ordered_json::object();
    nlohmann::ordered_json arguments = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!arguments.is_object()) {
        fail(
            "--chat-template-kwargs {}: expected a JSON object, such as "
            "'{{\"enable_thinking\": false}}'",
            text);
    }
    return arguments;
}

}  // namespace

void HttpOptions::add(CLI::App& app) {
    add_access(app);
    add_limits(app);
}

void HttpOptions::add_access(CLI::App& app) {
    const std::string group = "Connections";
    app.add_option("--host", host_, "Address to listen on; 0.0.0.0 = all of this machine's")
        ->capture_default_str()
        ->group(group);
    app.add_option("--port", port_, "Port; 0 = any free one, which is printed")
        ->check(whole_number(0, 65535))
        ->capture_default_str()
        ->group(group);
    list(app, "--api-key", api_keys_,
         "A key that clients must send; several with commas, or by several flags")
        ->group(group);
    app.add_option("--api-key-file", api_key_file_,
                   "Such keys from a file, one a line; # begins a comment")
        ->group(group);
    list(app, "--cors-origin,--cors-origins", cors_origins_,
         "A web page's origin that may use the server, as in https://chat.example; localhost = "
         "any page of this machine, * = all; several with commas (default: none)")
        ->group(group);
    list(app, "--allowed-host", allowed_hosts_,
         "A further Host name to take while only this machine can connect, for a proxy before it")
        ->group(group);
}

void HttpOptions::add_limits(CLI::App& app) {
    const std::string group = "Connections";
    app.add_option("--max-connections", max_connections_,
                   "Connections at once; idle ones make room, else a new one is answered 503")
        ->check(whole_number(1, 65535))
        ->capture_default_str()
        ->group(group);
    app.add_option("--max-body", max_body_mib_, "MiB of a request's body")
        ->check(whole_number(1, 1024))
        ->capture_default_str()
        ->group(group);
    seconds(app, "--header-timeout", header_seconds_, "Seconds that a request's headers may take");
    seconds(app, "--idle-timeout", idle_seconds_, "Seconds between two requests of a connection");
    seconds(app, "--timeout", timeout_seconds_,
            "-to: seconds that a body may take (and one more per 16 KiB), or a client that reads "
            "nothing of its answer");
    seconds(app, "--drain-timeout", drain_seconds_,
            "Seconds that requests under way may take after SIGTERM or Ctrl-C");
    app.add_flag("--log-prompts", log_prompts_, "Log what clients ask, prompts and all")
        ->group(group);
}

std::vector<std::string> HttpOptions::api_keys() const {
    std::vector<std::string> keys = split_at_commas(api_keys_);
    if (!api_keys_.empty() && keys.empty()) fail("--api-key is empty, expected a key");
    for (const std::string& key : keys) check_key(key, "--api-key");
    if (api_key_file_.empty()) return keys;
    const size_t n_before = keys.size();
    std::istringstream lines(read_text_file(api_key_file_, "the API keys"));
    for (std::string line; std::getline(lines, line);) {
        if (line.ends_with('\r')) line.pop_back();
        if (line.empty() || line.starts_with('#')) continue;
        check_key(line, "--api-key-file " + api_key_file_);
        keys.push_back(line);
    }
    // Without this a file of comments would leave the server open to all.
    if (keys.size() == n_before) fail("--api-key-file {} holds no key", api_key_file_);
    return keys;
}

HttpSettings HttpOptions::settings() const {
    HttpSettings settings;
    settings.host = host_;
    settings.port = port_;
    settings.api_keys = api_keys();
    settings.cors_origins = split_at_commas(cors_origins_);
    for (const std::string& origin : settings.cors_origins) check_origin(origin);
    settings.allowed_hosts = split_at_commas(allowed_hosts_);
    settings.max_connections = max_connections_;
    settings.max_body_bytes = max_body_mib_ << 20;
    settings.header_time = milliseconds(header_seconds_);
    settings.idle_time = milliseconds(idle_seconds_);
    settings.body_time = milliseconds(timeout_seconds_);
    settings.write_time = milliseconds(timeout_seconds_);
    return settings;
}

std::chrono::milliseconds HttpOptions::drain_time() const { return milliseconds(drain_seconds_); }

void ServingOptions::add(CLI::App& app) {
    list(app, "--variant", variants_,
         "NAME=SPEC: a plan to serve under a model name of its own, instead of the plan flags; "
         "several by several flags, all on the same weights")
        ->group("Layer plan");
    add_slots(app);
    add_answers(app);
    sampling_.add(app);
}

void ServingOptions::add_slots(CLI::App& app) {
    const std::string group = "Serving";
    app.add_option("-a,--alias", alias_, "The model's name in answers (default: the file's)")
        ->group(group);
    app.add_option("--parallel", n_parallel_,
                   "-np: requests that are worked on at once, of each variant")
        ->check(whole_number(-1, 256))
        ->capture_default_str()
        ->group(group);
    app.add_option("--queue", queue_, "Requests that may wait; more are answered 503")
        ->check(whole_number(0, 100'000))
        ->capture_default_str()
        ->group(group);
    app.add_flag("--deterministic", deterministic_,
                 "Decode requests one by one: an answer does not depend on the others to the bit")
        ->group(group);
    app.add_option("--slot-prompt-similarity", slot_similarity_,
                   "-sps: share of a prompt that a slot must hold to be preferred; 0 = any slot")
        ->check(CLI::Range(0.0, 1.0))
        ->default_str(fmt::format("{}", slot_similarity_))
        ->group(group);
    app.add_option("--ctx-checkpoints", n_snapshots_,
                   "-ctxcp: recurrent states kept per slot, to begin again from")
        ->check(whole_number(0, 1024))
        ->capture_default_str()
        ->group(group);
    app.add_option("--pooling", pooling_,
                   "How an embedding is made of its tokens (default: the file's, else last)")
        ->check(CLI::IsMember({"none", "mean", "cls", "last"}))
        ->group(group);
    app.add_flag("--slots-show-prompts", show_prompts_, "GET /slots tells what is being asked")
        ->group(group);
    app.add_flag("--slots,!--no-slots", slots_, "GET /slots is there (default), or not")
        ->group(group);
    app.add_flag("--metrics,!--no-metrics", metrics_, "GET /metrics is there (default), or not")
        ->group(group);
}

void ServingOptions::add_answers(CLI::App& app) {
    const std::string group = "Answers";
    app.add_option("-n,--predict,--n-predict", n_predict_,
                   "Tokens of an answer where a request does not say; -1 = as many as fit")
        ->check(whole_number(-1, INT32_MAX))
        ->capture_default_str()
        ->group(group);
    CLI::Option* const text = app.add_option("--chat-template", chat_template_,
                                             "A chat template (Jinja) instead of the file's");
    text->group(group);
    app.add_option("--chat-template-file", chat_template_file_, "The same from a file")
        ->excludes(text)
        ->group(group);
    app.add_option("--chat-template-kwargs", chat_template_kwargs_,
                   "Variables of the template as a JSON object; requests may say others")
        ->group(group);
    app.add_option("--reasoning-format", reasoning_format_,
                   "Where reasoning goes: none = stays in the content, deepseek or auto = "
                   "reasoning_content")
        ->check(CLI::IsMember({"none", "deepseek", "auto", "deepseek-legacy"}))
        ->capture_default_str()
        ->group(group);
    app.add_option("--reasoning", reasoning_,
                   "-rea: on or off = tells the template whether to think (enable_thinking)")
        ->check(CLI::IsMember({"on", "off", "auto"}))
        ->capture_default_str()
        ->group(group);
    app.add_flag("--prefill-assistant,!--no-prefill-assistant", prefill_assistant_,
                 "A last message of the assistant's is gone on with (default), or not")
        ->group(group);
}

std::vector<std::pair<std::string, std::string>> ServingOptions::variants() const {
    std::vector<std::pair<std::string, std::string>> variants;
    for (const std::string& text : variants_) {
        const size_t equals = text.find('=');
        if (equals == std::string::npos) {
            fail("--variant \"{}\" is not NAME=SPEC, such as \"deep=26,34\" or \"base=\"", text);
        }
        const std::string name = text.substr(0, equals);
        constexpr std::string_view fit =
            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
        if (name.empty() || name.find_first_not_of(fit) != std::string::npos) {
            fail(
                "--variant \"{}\": the name \"{}\" is not of letters, digits, \".\", \"_\" and "
                "\"-\"",
                text, name);
        }
        for (const auto& [other, spec] : variants) {
            if (other == name) fail("--variant \"{}\": the name {} is there twice", text, name);
        }
        variants.emplace_back(name, text.substr(equals + 1));
    }
    return variants;
}

EngineSettings ServingOptions::engine_settings(ContextSettings context) const {
    constexpr int automatic = 4;
    if (n_parallel_ == 0) fail("-np 0: at least one request must be worked on");
    context.cache.n_seq = static_cast<uint32_t>(n_parallel_ < 0 ? automatic : n_parallel_);
    EngineSettings settings;
    settings.context = context;
    settings.queue = queue_;
    settings.deterministic = deterministic_;
    settings.n_snapshots = n_snapshots_;
    settings.slot_similarity = slot_similarity_;
    if (!pooling_.empty()) settings.pooling = pooling_of_name(pooling_);
    return settings;
}

ApiSettings ServingOptions::api_settings() const {
    ApiSettings settings;
    settings.alias = alias_;
    settings.sampling = sampling_.params();
    settings.n_predict = n_predict_;
    if (reasoning_format_ == "deepseek-legacy") {
        fail(
            "--reasoning-format deepseek-legacy is not offered: reasoning is told once, in the "
            "content (none) or beside it (deepseek)");
    }
    settings.reasoning =
        reasoning_format_ == "none" ? ReasoningFormat::none : ReasoningFormat::separate;
    settings.continue_answers = prefill_assistant_;
    settings.template_arguments = template_arguments(chat_template_kwargs_);
    if (reasoning_ != "auto") settings.template_arguments["enable_thinking"] = reasoning_ == "on";
    settings.show_prompts = show_prompts_;
    settings.slots = slots_;
    settings.metrics = metrics_;
    return settings;
}

std::string ServingOptions::chat_template() const {
    if (!chat_template_file_.empty()) {
        return read_text_file(chat_template_file_, "the chat template");
    }
    return chat_template_;
}

}  // namespace pleat::cli
