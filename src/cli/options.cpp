#include "cli/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <span>
#include <utility>

#include "base/cpu.h"
#include "base/error.h"
#include "cli/numbers.h"
#include "lab/fingerprint.h"
#include "model/backend.h"
#include "plan_file/plan_file.h"

namespace pleat::cli {
namespace {

constexpr uint32_t default_n_ctx = 4096;

struct ShortName {
    std::string_view written;
    std::string_view meant;
};

constexpr std::array short_names{
    ShortName{"-ctk", "--cache-type-k"}, ShortName{"-ctv", "--cache-type-v"},
    ShortName{"-tb", "--threads-batch"}, ShortName{"-ub", "--ubatch-size"},
    ShortName{"-fa", "--flash-attn"},    ShortName{"-ngl", "--n-gpu-layers"},
    ShortName{"-np", "--parallel"},      ShortName{"-sm", "--split-mode"},
    ShortName{"-ts", "--tensor-split"},  ShortName{"-mg", "--main-gpu"},
    ShortName{"-dev", "--device"},       ShortName{"-sys", "--system-prompt"},
    ShortName{"-sp", "--special"},       ShortName{"-sysf", "--system-prompt-file"},
};

/// Those that only the server knows.
constexpr std::array server_short_names{
    ShortName{"-to", "--timeout"},         ShortName{"-sps", "--slot-prompt-similarity"},
    ShortName{"-rea", "--reasoning"},      ShortName{"-ctxcp", "--ctx-checkpoints"},
    ShortName{"-cb", "--cont-batching"},   ShortName{"-nocb", "--no-cont-batching"},
    ShortName{"-kvu", "--kv-unified"},     ShortName{"-no-kvu", "--no-kv-unified"},
    ShortName{"-cram", "--cache-ram"},     ShortName{"-jf", "--json-schema-file"},
    ShortName{"-mm", "--mmproj"},          ShortName{"-md", "--model-draft"},
    ShortName{"-hf", "--hf-repo"},         ShortName{"-mu", "--model-url"},
    ShortName{"-lm", "--load-mode"},       ShortName{"-lv", "--log-verbosity"},
    ShortName{"-nkvo", "--no-kv-offload"},
};

const CacheType& cache_type_of_flag(std::string_view flag, const std::string& name) {
    try {
        return cache_type(name);
    } catch (const Error& error) {
        fail("{} {}: {}", flag, name, error.what());
    }
}

}  // namespace

std::vector<std::string> expand_short_names(int argc, char** argv) {
    const auto expanded = [](std::span<const ShortName> names, std::string_view argument) {
        const auto name = std::ranges::find(names, argument, &ShortName::written);
        return name == names.end() ? argument : name->meant;
    };
    std::vector<std::string> arguments;
    for (int i = 1; i < argc; ++i) {
        std::string_view argument = expanded(short_names, argv[i]);
        if (arguments.size() > 0 && arguments[0] == "serve") {
            argument = expanded(server_short_names, argument);
        }
        arguments.emplace_back(argument);
    }
    return arguments;
}

void ModelArgument::add(CLI::App& app, int n_more, const std::string& more_help) {
    n_more_ = static_cast<size_t>(n_more);
    app.add_option("-m,--model", option_, "Model file (GGUF), instead of the first argument");
    app.add_option("MODEL", arguments_,
                   n_more == 0 ? "Model file (GGUF); of a split model the first part"
                               : "Model file (GGUF), then " + more_help)
        ->expected(0, n_more + 1);
}

std::string ModelArgument::model() const {
    if (!option_.empty()) {
        if (arguments_.size() > n_more_) {
            fail("two models given, {} and -m {}; name one", arguments_.front(), option_);
        }
        return option_;
    }
    if (arguments_.empty())
        fail("no model given: name a GGUF file as the first argument or with -m");
    return arguments_.front();
}

std::string ModelArgument::more(size_t i, std::string_view what) const {
    const size_t index = option_.empty() ? i + 1 : i;
    if (index >= arguments_.size()) fail("{} is missing", what);
    return arguments_[index];
}

void PlanOptions::add(CLI::App& app) {
    const auto option = [&](const char* name, std::vector<std::string>& target, const char* help) {
        app.add_option(name, target, help)
            ->group("Layer plan")
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    option("--repeat-layers", flags_.repeat_layers,
           "Run blocks of layers again, in place: \"26,34\" runs 26..33 twice; \"i,jxN;...\"");
    option("--layers", flags_.layers,
           "The whole path: \"0..33,26..33[-attn],34..63\"; marks [-attn] [-ffn] [scale=F] [qk=F]");
    option("--skip-layers", flags_.skip_layers, "Layers that are not run at all: \"3,7..9\"");
    option("--drop-attention", flags_.drop_attention,
           "Layers that lose their attention in every pass: \"3,7..9\"");
    option("--drop-ffn", flags_.drop_ffn, "Layers that lose their FFN in every pass");
    app.add_option("--plan", file_, "A plan file: Pleat profile, mergekit passthrough, block list")
        ->group("Layer plan");
    app.add_flag("--strict-profile", strict_profile_,
                 "Refuse a profile that was made for other weights of the same shape")
        ->group("Layer plan");
}

bool PlanOptions::given() const {
    return file_ || !flags_.repeat_layers.empty() || !flags_.layers.empty() ||
           !flags_.skip_layers.empty() || !flags_.drop_attention.empty() ||
           !flags_.drop_ffn.empty();
}

LayerPlan PlanOptions::resolve(const Model& model) const {
    const Spec spec = parse_flags(flags_);
    if (!file_) return LayerPlan::resolve(spec, model.shape());
    if (file_->empty()) fail("--plan is empty, expected the name of a plan file");
    if (!spec.identity()) {
        fail("--plan {} goes with no other plan flag: the file says the whole plan", *file_);
    }
    return resolve_spec("@" + *file_, "--plan", model);
}

LayerPlan PlanOptions::resolve_spec(const std::string& text, std::string_view flag,
                                    const Model& model) const {
    if (!text.starts_with('@')) return LayerPlan::resolve(parse_spec(text, flag), model.shape());
    const std::string path = text.substr(1);
    const PlanFile file = read_plan_file(path);
    if (file.model) {
        const ProfileCheck check = strict_profile_ ? ProfileCheck::strict : ProfileCheck::warn;
        // Hashes take longer than the rest of `pleat plan`, and not every profile states them.
        const Fingerprint found = file.model->has_hashes()
                                      ? fingerprint_of(model.file(), model.shape())
                                      : shape_fingerprint(model.shape());
        for (const std::string& warning : check_model(*file.model, found, path, check)) {
            fmt::print(stderr, "warning: {}\n", warning);
        }
    }
    return LayerPlan::resolve(file.spec, model.shape());
}

void ContextOptions::add(CLI::App& app, bool with_context_size) {
    const std::string group = "Context";
    if (with_context_size) {
        app.add_option(
               "-c,--ctx-size", n_ctx_,
               "Tokens of context; 0 = the model's own (default: the model's, at most 4096)")
            ->check(whole_number(0, INT32_MAX))
            ->group(group);
    }
    app.add_option("-b,--batch-size", n_batch_, "Tokens per batch")
        ->check(whole_number(1, INT32_MAX))
        ->capture_default_str()
        ->group(group);
    app.add_option("--ubatch-size", n_ubatch_, "-ub: tokens per graph run")
        ->check(whole_number(1, INT32_MAX))
        ->capture_default_str()
        ->group(group);
    app.add_option("-t,--threads", n_threads_, "Threads (default: physical cores)")
        ->check(whole_number(1, 1024))
        ->group(group);
    app.add_option("--threads-batch", n_threads_batch_, "-tb: threads for prompts (default: -t)")
        ->check(whole_number(1, 1024))
        ->group(group);
    app.add_option("--flash-attn", flash_attention_, "-fa: flash attention")
        ->check(CLI::IsMember({"auto", "on", "off", "1", "0", "true", "false"}))
        ->capture_default_str()
        ->group(group);
    app.add_option("--cache-type-k", type_k_, "-ctk: type of the K cache")
        ->capture_default_str()
        ->group(group);
    app.add_option("--cache-type-v", type_v_, "-ctv: type of the V cache")
        ->capture_default_str()
        ->group(group);
    app.add_flag("--swa-full", swa_full_, "Full-size caches for sliding-window layers")
        ->group(group);
    app.add_flag("--no-mmap", no_mmap_, "Copy the weights into memory instead of mapping the file")
        ->group(group);
    app.add_flag("--no-repack", no_repack_, "Do not rearrange weights for faster kernels")
        ->group(group);
    app.add_flag("-q,--quiet", quiet_, "No load log on stderr")->group(group);
    app.add_option("--n-gpu-layers", n_gpu_layers_,
                   "-ngl: no device but the CPU yet; ignored with a warning")
        ->group(group);
    for (const char* name : {"--split-mode", "--tensor-split", "--main-gpu", "--device", "--rpc"}) {
        app.add_option_function<std::string>(
               name, [this, name](const std::string&) { refused_.emplace_back(name); },
               "Not supported yet: refused")
            ->group("");
    }
}

ContextSettings ContextOptions::settings(const ModelShape& shape) const {
    ContextSettings settings;
    settings.cache.n_ctx = n_ctx_ < 0    ? std::min(shape.n_ctx_train, default_n_ctx)
                           : n_ctx_ == 0 ? shape.n_ctx_train
                                         : static_cast<uint32_t>(n_ctx_);
    settings.cache.n_ubatch = n_ubatch_;
    settings.cache.swa_full = swa_full_;
    settings.cache.type_k = cache_type_of_flag("-ctk", type_k_);
    settings.cache.type_v = cache_type_of_flag("-ctv", type_v_);
    settings.n_batch = n_batch_;
    settings.n_threads = n_threads_ > 0 ? n_threads_ : physical_cores();
    settings.n_threads_batch = n_threads_batch_ > 0 ? n_threads_batch_ : settings.n_threads;
    settings.flash_attention =
        flash_attention_ == "on" || flash_attention_ == "1" || flash_attention_ == "true"
            ? FlashAttention::on
        : flash_attention_ == "off" || flash_attention_ == "0" || flash_attention_ == "false"
            ? FlashAttention::off
            : FlashAttention::automatic;
    settings.cache.flash_attention = settings.flash_attention != FlashAttention::off;
    return settings;
}

ModelOptions ContextOptions::model_options() const {
    return {.use_mmap = !no_mmap_, .repack = !no_repack_};
}

std::vector<std::string> ContextOptions::warnings() const {
    if (!refused_.empty()) {
        fail("{} is not supported: this version computes on one CPU", refused_.front());
    }
    std::vector<std::string> warnings;
    if (!n_gpu_layers_.empty() && n_gpu_layers_ != "0") {
        warnings.push_back(fmt::format(
            "-ngl {}: no GPU device in this version, the CPU runs all layers", n_gpu_layers_));
    }
    return warnings;
}

void load_backends_from_environment() {
    // ggml tells each tensor it repacks; a person wants to know what went wrong.
    ggml_log_set(
        [](ggml_log_level level, const char* text, void*) {
            if (level == GGML_LOG_LEVEL_ERROR) fmt::print(stderr, "{}", text);
        },
        nullptr);
    const char* const directory = std::getenv("PLEAT_BACKEND_DIR");
    load_backends(directory != nullptr && *directory != '\0' ? directory : PLEAT_BACKEND_DIR);
}

}  // namespace pleat::cli
