#include "cli/llama_server_flags.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string_view>

#include "base/error.h"

namespace pleat::cli {
namespace {

struct Flag {
    const char* names;
    bool has_value;
    const char* why;  ///< of those that need one
};

/// What they ask for is so, always.
constexpr std::array settled{
    Flag{"--jinja", false, ""},
    Flag{"--embedding,--embeddings", false, ""},
    Flag{"--cont-batching", false, ""},
    Flag{"--no-context-shift", false, ""},
    Flag{"--no-kv-unified", false, ""},
    Flag{"--cache-prompt", false, ""},
    Flag{"--no-webui,--no-ui", false, ""},
    Flag{"--no-mmproj", false, ""},
    Flag{"--offline", false, ""},
    Flag{"--warmup", false, ""},
    Flag{"--no-warmup", false, ""},
    Flag{"--no-perf", false, ""},
    Flag{"--threads-http", true, ""},
    Flag{"--keep", true, ""},  // of a shifted context, which there is none of
};

constexpr const char* one_log = "the log is a line per request, on stderr; -q leaves it out";

/// What they ask for changes no answer.
constexpr std::array ignored{
    Flag{"--cache-reuse", true, "the longest common beginning of a slot is reused, nothing else"},
    Flag{"--cache-ram", true, "what slots hold is reused, there is no other cache of prompts"},
    Flag{"--mlock", false, "the weights are not locked in memory"},
    Flag{"--load-mode", true, "the file is mapped, or with --no-mmap read"},
    Flag{"--numa", true, "threads are placed by the system"},
    Flag{"--prio", true, "threads run at the process's priority"},
    Flag{"--poll", true, "threads wait as OMP_WAIT_POLICY says"},
    Flag{"--no-kv-offload", false, "the K/V cache is where its layer is"},
    Flag{"--fit", true, "nothing is fitted to memory: -c and -np say what is wanted"},
    Flag{"--check-tensors", false, "names, types and sizes are checked always, values never"},
    Flag{"-v,--verbose,--log-verbose", false, one_log},
    Flag{"--log-verbosity", true, one_log},
    Flag{"--log-disable", false, one_log},
    Flag{"--log-timestamps", false, one_log},
    Flag{"--log-prefix", false, one_log},
    Flag{"--log-colors", true, one_log},
};

constexpr const char* no_download = "nothing is downloaded: name a GGUF file";
constexpr const char* no_images = "images and audio are not supported";
constexpr const char* no_draft = "there is no speculative decoding";
constexpr const char* no_adapters = "adapters and control vectors are not supported";
constexpr const char* no_tls = "HTTPS is not served: put a proxy before it";
constexpr const char* no_stretching = "the context is not stretched beyond what the file says";
constexpr const char* no_router = "one process serves one file (and any number of its plans)";
constexpr const char* no_schema_flag = "a request says it, in response_format or json_schema";
constexpr const char* no_agent = "the server runs no tools: it tells clients of calls";

constexpr std::array not_offered{
    Flag{"--no-jinja", false, "chat templates are Jinja here, always"},
    Flag{"--webui,--ui", false, "no web page is served"},
    Flag{"--log-file", true, "the log goes to stderr, which a shell can send to a file"},
    Flag{"--special", false, "control tokens are no part of an answer's text"},
    Flag{"--reasoning-budget", true, "thinking is not counted; --reasoning off turns it off"},
    Flag{"--no-cont-batching", false, "requests are batched always; -np 1 serves one at a time"},
    Flag{"--context-shift", false, "a full context ends the answer"},
    Flag{"--kv-unified", false, "each slot has a cache of its own"},
    Flag{"--slot-save-path", true, "what slots hold is not saved"},
    Flag{"--rerank,--reranking", false, "there is no reranking"},
    Flag{"--props", false, "POST /props is not offered"},
    Flag{"--path", true, "no files are served"},
    Flag{"--media-path", true, no_images},
    Flag{"--api-prefix", true, "paths are as in OpenAI's API: a proxy can put something before"},
    Flag{"--ssl-key-file", true, no_tls},
    Flag{"--ssl-cert-file", true, no_tls},
    Flag{"--mmproj", true, no_images},
    Flag{"--mmproj-url", true, no_images},
    Flag{"--lora", true, no_adapters},
    Flag{"--lora-scaled", true, no_adapters},
    Flag{"--control-vector", true, no_adapters},
    Flag{"--control-vector-scaled", true, no_adapters},
    Flag{"--model-draft", true, no_draft},
    Flag{"--spec-type", true, no_draft},
    Flag{"--hf-repo", true, no_download},
    Flag{"--hf-file", true, no_download},
    Flag{"--model-url", true, no_download},
    Flag{"--docker-repo", true, no_download},
    Flag{"--models-dir", true, no_router},
    Flag{"--models-preset", true, no_router},
    Flag{"--rope-scaling", true, no_stretching},
    Flag{"--rope-scale", true, no_stretching},
    Flag{"--rope-freq-base", true, no_stretching},
    Flag{"--rope-freq-scale", true, no_stretching},
    Flag{"--yarn-orig-ctx", true, no_stretching},
    Flag{"--override-kv", true, "the file says what it is"},
    Flag{"-j,--json-schema", true, no_schema_flag},
    Flag{"--json-schema-file", true, no_schema_flag},
    Flag{"--tools", true, no_agent},
    Flag{"--mcp-servers-config", true, no_agent},
    Flag{"--agent", false, no_agent},
};

struct Variable {
    const char* name;
    const char* flag;
};

constexpr const char* model_variable = "LLAMA_ARG_MODEL";
constexpr std::array variables{
    Variable{"LLAMA_ARG_HOST", "--host"},
    Variable{"LLAMA_ARG_PORT", "--port"},
    Variable{"LLAMA_API_KEY", "--api-key"},
    Variable{"LLAMA_ARG_API_KEY_FILE", "--api-key-file"},
    Variable{"LLAMA_ARG_CORS_ORIGINS", "--cors-origin"},
    Variable{"LLAMA_ARG_TIMEOUT", "--timeout"},
    Variable{"LLAMA_ARG_THREADS_HTTP", "--threads-http"},
    Variable{"LLAMA_ARG_ALIAS", "--alias"},
    Variable{"LLAMA_ARG_N_PARALLEL", "--parallel"},
    Variable{"LLAMA_ARG_CTX_SIZE", "--ctx-size"},
    Variable{"LLAMA_ARG_BATCH", "--batch-size"},
    Variable{"LLAMA_ARG_UBATCH", "--ubatch-size"},
    Variable{"LLAMA_ARG_THREADS", "--threads"},
    Variable{"LLAMA_ARG_FLASH_ATTN", "--flash-attn"},
    Variable{"LLAMA_ARG_CACHE_TYPE_K", "--cache-type-k"},
    Variable{"LLAMA_ARG_CACHE_TYPE_V", "--cache-type-v"},
    Variable{"LLAMA_ARG_SWA_FULL", "--swa-full"},
    Variable{"LLAMA_ARG_CTX_CHECKPOINTS", "--ctx-checkpoints"},
    Variable{"LLAMA_ARG_N_GPU_LAYERS", "--n-gpu-layers"},
    Variable{"LLAMA_ARG_POOLING", "--pooling"},
    Variable{"LLAMA_ARG_ENDPOINT_SLOTS", "--slots"},
    Variable{"LLAMA_ARG_ENDPOINT_METRICS", "--metrics"},
    Variable{"LLAMA_ARG_N_PREDICT", "--predict"},
    Variable{"LLAMA_ARG_CHAT_TEMPLATE", "--chat-template"},
    Variable{"LLAMA_ARG_CHAT_TEMPLATE_FILE", "--chat-template-file"},
    Variable{"LLAMA_ARG_CHAT_TEMPLATE_KWARGS", "--chat-template-kwargs"},
    Variable{"LLAMA_ARG_THINK", "--reasoning-format"},
    Variable{"LLAMA_ARG_REASONING", "--reasoning"},
    Variable{"LLAMA_ARG_JINJA", "--jinja"},
    Variable{"LLAMA_ARG_EMBEDDINGS", "--embeddings"},
    Variable{"LLAMA_ARG_CONT_BATCHING", "--cont-batching"},
    Variable{"LLAMA_ARG_TEMPERATURE", "--temp"},
    Variable{"LLAMA_ARG_TOP_K", "--top-k"},
    Variable{"LLAMA_ARG_TOP_P", "--top-p"},
    Variable{"LLAMA_ARG_MIN_P", "--min-p"},
    Variable{"LLAMA_ARG_REPEAT_PENALTY", "--repeat-penalty"},
    Variable{"LLAMA_ARG_PRESENCE_PENALTY", "--presence-penalty"},
    Variable{"LLAMA_ARG_FREQUENCY_PENALTY", "--frequency-penalty"},
};

void add_flag(CLI::App& app, const Flag& flag, const std::function<void()>& note) {
    const std::string help = *flag.why == '\0' ? "Always so" : flag.why;
    CLI::Option* const option = flag.has_value
                                    ? app.add_option_function<std::string>(
                                          flag.names, [note](const std::string&) { note(); }, help)
                                    : app.add_flag_function(
                                          flag.names,
                                          [note](int64_t n) {
                                              if (n > 0) note();
                                          },
                                          help);
    option->group("");  // not in the help: docs/serve.md lists them
}

std::string last_name(const Flag& flag) {
    const std::string_view names = flag.names;
    return std::string(names.substr(names.rfind(',') + 1));
}

}  // namespace

void LlamaServerFlags::add(CLI::App& app) {
    for (const Flag& flag : settled) add_flag(app, flag, [] {});
    for (const Flag& flag : ignored) {
        add_flag(app, flag, [this, &flag] {
            ignored_.push_back(fmt::format("{} changes nothing: {}", last_name(flag), flag.why));
        });
    }
    for (const Flag& flag : not_offered) {
        add_flag(app, flag, [this, &flag] {
            refused_.push_back(fmt::format("{} is not offered: {}", last_name(flag), flag.why));
        });
    }
}

std::vector<std::string> LlamaServerFlags::warnings() const {
    if (!refused_.empty()) fail("{}", refused_.front());
    return ignored_;
}

void read_llama_environment(CLI::App& app) {
    for (const Variable& variable : variables) {
        app.get_option(variable.flag)->envname(variable.name);
    }
}

std::vector<std::string> unread_llama_environment() {
    std::vector<std::string> warnings;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        if (!name.starts_with("LLAMA_ARG_") || name == model_variable) continue;
        const auto known = std::ranges::find(
            variables, name, [](const Variable& v) { return std::string_view(v.name); });
        if (known != variables.end()) continue;
        warnings.push_back(fmt::format("{} is set, but nothing here reads it", name));
    }
    std::ranges::sort(warnings);
    return warnings;
}

std::string model_of_environment() {
    const char* const path = std::getenv(model_variable);
    return path == nullptr ? "" : path;
}

}  // namespace pleat::cli
