#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "arch/registry.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/options.h"

namespace pleat::cli {
namespace {

using nlohmann::ordered_json;

struct KvBytes {
    uint64_t k = 0;
    uint64_t v = 0;
};

KvBytes kv_bytes(const LayerShape& layer, const CacheSettings& settings) {
    if (!owns_kv(layer.role)) return {};
    const auto row = [&](uint32_t head_dim, const CacheType& type) {
        return uint64_t{layer.n_head_kv} * head_dim * type.block_bytes / type.block_size;
    };
    return {.k = row(layer.head_dim_k, settings.type_k),
            .v = row(layer.head_dim_v, settings.type_v)};
}

struct InspectCommand {
    ModelArgument model;
    std::string type_k = "f16";
    std::string type_v = "f16";
    bool json = false;

    void run() const {
        CacheSettings settings;
        settings.type_k = cache_type(type_k);
        settings.type_v = cache_type(type_v);
        const auto file = open_model(model.model());
        if (json) {
            fmt::print("{}\n", as_json(*file, settings).dump(2));
        } else {
            fmt::print("{}", as_text(*file, settings));
        }
    }

    static std::string as_text(const Model& m, const CacheSettings& settings) {
        const ModelShape& s = m.shape();
        std::string text = fmt::format(
            "{}: {} {}, {} layers{}, n_embd {}, n_vocab {}, trained context {}\n", m.file().path(),
            s.architecture, s.name, s.n_layer,
            s.n_layer_nextn > 0 ? fmt::format(" (and {} MTP, never run)", s.n_layer_nextn) : "",
            s.n_embd, s.n_vocab, s.n_ctx_train);
        text += fmt::format("{:>5}  {:<19}  {:<9}  {:>12}  {:>12}  {:>12}  {:>12}\n", "layer",
                            "role", "droppable", "K/token", "V/token", "attention", "ffn");
        for (size_t i = 0; i < s.layers.size(); ++i) {
            const LayerShape& layer = s.layers[i];
            const KvBytes kv = kv_bytes(layer, settings);
            text += fmt::format(
                "{:>5}  {:<19}  {:<9}  {:>12}  {:>12}  {:>12}  {:>12}\n", i, role_name(layer.role),
                droppable(layer.role) ? "yes" : "no", format_bytes(kv.k), format_bytes(kv.v),
                format_bytes(layer.attention.resident_bytes),
                format_bytes(layer.ffn.resident_bytes + layer.other.resident_bytes));
        }
        text += fmt::format("embedding {}, output {}{}, file {} in {} part{}\n",
                            format_bytes(s.embedding.resident_bytes),
                            format_bytes(s.output.resident_bytes),
                            m.file().find_tensor("output.weight") == nullptr ? " (tied)" : "",
                            format_bytes(m.file().file_bytes()), m.file().parts().size(),
                            m.file().parts().size() == 1 ? "" : "s");
        return text;
    }

    static ordered_json as_json(const Model& m, const CacheSettings& settings) {
        const ModelShape& s = m.shape();
        ordered_json layers = ordered_json::array();
        for (size_t i = 0; i < s.layers.size(); ++i) {
            const LayerShape& layer = s.layers[i];
            const KvBytes kv = kv_bytes(layer, settings);
            layers.push_back({{"layer", i},
                              {"role", role_name(layer.role)},
                              {"droppable", droppable(layer.role)},
                              {"k_bytes_per_token", kv.k},
                              {"v_bytes_per_token", kv.v},
                              {"state_bytes", layer.state_bytes()},
                              {"attention_weight_bytes", layer.attention.resident_bytes},
                              {"ffn_weight_bytes", layer.ffn.resident_bytes},
                              {"other_weight_bytes", layer.other.resident_bytes}});
        }
        return {{"file", m.file().path()},
                {"file_bytes", m.file().file_bytes()},
                {"n_parts", m.file().parts().size()},
                {"gguf_version", m.file().version()},
                {"architecture", s.architecture},
                {"name", s.name},
                {"n_layer", s.n_layer},
                {"n_layer_nextn", s.n_layer_nextn},
                {"n_embd", s.n_embd},
                {"n_vocab", s.n_vocab},
                {"n_ctx_train", s.n_ctx_train},
                {"n_swa", s.n_swa},
                {"embedding_weight_bytes", s.embedding.resident_bytes},
                {"output_weight_bytes", s.output.resident_bytes},
                {"layers", layers}};
    }
};

}  // namespace

void add_inspect(CLI::App& app) {
    auto command = std::make_shared<InspectCommand>();
    CLI::App* const sub = app.add_subcommand(
        "inspect", "Show a model's layers: role, what can be dropped, K/V and weight bytes");
    command->model.add(*sub);
    sub->add_option("--cache-type-k", command->type_k, "-ctk: type of the K cache")
        ->capture_default_str();
    sub->add_option("--cache-type-v", command->type_v, "-ctv: type of the V cache")
        ->capture_default_str();
    sub->add_flag("--json", command->json, "One JSON object instead of a table");
    sub->footer("Example:\n  pleat inspect model.gguf --json");
    sub->callback([command] { command->run(); });
}

}  // namespace pleat::cli
