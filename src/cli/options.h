#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/context.h"
#include "model/model.h"
#include "plan/cost.h"
#include "plan/plan.h"
#include "plan/shape.h"
#include "plan/spec.h"

namespace pleat::cli {

/// MODEL, as the first argument or with -m; `n_more` further arguments follow it.
class ModelArgument {
  public:
    void add(CLI::App& app, int n_more = 0, const std::string& more_help = "");
    bool given() const { return !option_.empty() || !arguments_.empty(); }
    /// Throws Error when neither form or both forms named a model.
    std::string model() const;
    /// The i-th argument after MODEL; throws Error when it is missing.
    std::string more(size_t i, std::string_view what) const;

  private:
    std::string option_;
    std::vector<std::string> arguments_;
    size_t n_more_ = 0;
};

/// --repeat-layers, --layers, --drop-attention, --drop-ffn, --skip-layers, --plan,
/// --strict-profile.
class PlanOptions {
  public:
    void add(CLI::App& app);
    /// Whether any of them was given, be it for the identity.
    bool given() const;
    /// Parses the flags and resolves them against the model. Throws Error; a profile that was made
    /// for other weights of the model's shape is a warning on stderr, or an Error when strict.
    LayerPlan resolve(const Model& model) const;
    /// The same of a one-line SPEC that the command takes beside the plan flags.
    LayerPlan resolve_spec(const std::string& text, std::string_view flag,
                           const Model& model) const;

  private:
    PlanFlags flags_;
    std::optional<std::string> file_;
    bool strict_profile_ = false;
};

/// Context, threads, cache types, as llama.cpp names them.
class ContextOptions {
  public:
    explicit ContextOptions(uint32_t default_n_ubatch = 512) : n_ubatch_(default_n_ubatch) {}
    void add(CLI::App& app, bool with_context_size = true);
    /// Settings for a model; n_ctx is min(the model's, 4096) unless -c says otherwise.
    ContextSettings settings(const ModelShape& shape) const;
    ModelOptions model_options() const;
    /// Warnings about flags that do nothing here; throws Error for those that cannot be honoured.
    std::vector<std::string> warnings() const;

    bool context_size_given() const { return n_ctx_ >= 0; }
    bool quiet() const { return quiet_; }

  private:
    int64_t n_ctx_ = -1;
    uint32_t n_batch_ = 2048;
    uint32_t n_ubatch_;
    int n_threads_ = 0;
    int n_threads_batch_ = 0;
    std::string flash_attention_ = "auto";
    std::string type_k_ = "f16";
    std::string type_v_ = "f16";
    bool no_mmap_ = false;
    bool no_repack_ = false;
    bool swa_full_ = false;
    bool quiet_ = false;
    std::string n_gpu_layers_;
    std::vector<std::string> refused_;
};

/// Loads ggml's backends from PLEAT_BACKEND_DIR (environment), else where the build found them.
void load_backends_from_environment();

/// llama.cpp's short names of more than one letter (-ctk, -ub, ...), which CLI11 does not have,
/// become the long ones.
std::vector<std::string> expand_short_names(int argc, char** argv);

}  // namespace pleat::cli
