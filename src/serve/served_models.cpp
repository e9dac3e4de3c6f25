#include "serve/served_models.h"

#include <fmt/ranges.h>
#include <llama.h>

#include <utility>

#include "plan/cost.h"
#include "plan_file/cost_json.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

std::string file_type(const gguf::File& file) {
    const std::optional<uint32_t> type = file.u32("general.file_type");
    const char* const name = type ? llama_ftype_name(static_cast<llama_ftype>(*type)) : nullptr;
    return name == nullptr ? std::string() : name;
}

ordered_json file_json(const Model& model, uint32_t n_ctx) {
    uint64_t n_params = 0;
    uint64_t bytes = 0;
    for (const gguf::TensorInfo& tensor : model.file().tensors()) {
        uint64_t elements = 1;
        for (const int64_t n : tensor.ne) elements *= static_cast<uint64_t>(n);
        n_params += elements;
        bytes += tensor.bytes;
    }
    const Hparams& hparams = model.hparams();
    return {{"n_vocab", hparams.n_vocab},
            {"n_ctx", n_ctx},
            {"n_ctx_train", hparams.n_ctx_train},
            {"n_embd", hparams.n_embd},
            {"n_layer", hparams.n_layer},
            {"n_params", n_params},
            {"size", bytes},
            {"ftype", file_type(model.file())},
            {"architecture", model.shape().architecture}};
}

/// Enough of Ollama's entry for programs that look for it, as llama-server has it.
ordered_json other_form(const std::string& name) {
    return {{"name", name},
            {"model", name},
            {"modified_at", ""},
            {"size", ""},
            {"digest", ""},
            {"type", "model"},
            {"description", ""},
            {"tags", {""}},
            {"capabilities", {"completion"}},
            {"parameters", ""},
            {"details",
             {{"parent_model", ""},
              {"format", "gguf"},
              {"family", ""},
              {"families", {""}},
              {"parameter_size", ""},
              {"quantization_level", ""}}}};
}

}  // namespace

ServedModels::ServedModels(std::vector<std::string> names) : names_(std::move(names)) {}

size_t ServedModels::find(std::string_view name) const {
    for (size_t i = 0; i < names_.size(); ++i) {
        if (names_.size() == 1 || names_[i] == name) return i;
    }
    constexpr size_t longest_quote = 100;
    throw RequestError(404,
                       fmt::format("there is no model \"{}\"; there are {}",
                                   name.substr(0, longest_quote), fmt::join(names_, ", ")),
                       "model");
}

size_t ServedModels::find(const Fields& fields) const {
    const std::optional<std::string> name = fields.text("model");
    return name && !name->empty() ? find(*name) : 0;
}

std::string model_name_of_path(std::string_view path) {
    path.remove_prefix(path.rfind('/') + 1);  // npos + 1 is 0
    if (path.ends_with(".gguf")) path.remove_suffix(5);
    return std::string(path);
}

ordered_json plan_cost_json(const Context& context) {
    const CacheSettings& settings = context.settings().cache;
    const ModelShape& shape = context.model().shape();
    const PlanCost cost = plan_cost(context.plan(), shape, settings);
    const PlanCost base = plan_cost(LayerPlan::resolve({}, shape), shape, settings);
    ordered_json costs = cost_json(cost);
    costs["ratios"] = cost_ratios_json(cost, base);
    return costs;
}

ordered_json model_json(const std::string& name, const Context& context, uint32_t n_ctx,
                        int64_t created) {
    return {{"id", name},
            {"aliases", {name}},
            {"tags", ordered_json::array()},
            {"object", "model"},
            {"created", created},
            {"owned_by", "pleat"},
            {"architecture", {{"input_modalities", {"text"}}, {"output_modalities", {"text"}}}},
            {"meta", file_json(context.model(), n_ctx)},
            {"plan", context.plan().canonical()},
            {"plan_hash", context.plan().hash()},
            {"identity", context.plan().is_identity()},
            {"costs", plan_cost_json(context)}};
}

ordered_json model_list_json(const Engine& engine, const ServedModels& models, int64_t created) {
    ordered_json others = ordered_json::array();
    ordered_json data = ordered_json::array();
    for (size_t i = 0; i < models.names().size(); ++i) {
        others.push_back(other_form(models.name(i)));
        data.push_back(model_json(models.name(i), engine.context(i), engine.n_ctx(), created));
    }
    return {{"object", "list"}, {"data", std::move(data)}, {"models", std::move(others)}};
}

}  // namespace pleat
