#include "bake/bake.h"

#include <fmt/format.h>

#include <utility>

#include "bake/deci.h"
#include "bake/metadata.h"
#include "bake/output.h"
#include "bake/tensors.h"
#include "base/error.h"
#include "gguf/writer.h"

namespace pleat {
namespace {

constexpr size_t max_stock_layers = 512;

std::vector<gguf::TensorToWrite> to_write(const gguf::File& file,
                                          const std::vector<BakedTensor>& tensors,
                                          std::vector<std::string>& warnings) {
    std::vector<gguf::TensorToWrite> list;
    list.reserve(tensors.size());
    for (const BakedTensor& tensor : tensors) {
        const gguf::TensorInfo& info = *tensor.source;
        list.push_back({.name = tensor.name,
                        .type = info.type,
                        .ne = {info.ne.begin(), info.ne.begin() + info.n_dims},
                        .write = [&file, &tensor, &warnings](const auto& sink) {
                            write_tensor(file, tensor, sink, warnings);
                        }});
    }
    return list;
}

/// Stock would refuse the file by the shape of a tensor, so say here what it is about.
void check_alike(const Model& model, const LayerPlan& plan) {
    if (!model.architecture().stock_layers_are_alike) return;
    const Hparams& h = model.hparams();
    const auto a = static_cast<size_t>(plan[0].layer);
    for (const Pass& pass : plan) {
        const auto b = static_cast<size_t>(pass.layer);
        if (h.n_head[a] == h.n_head[b] && h.n_head_kv[a] == h.n_head_kv[b] &&
            h.n_ff[a] == h.n_ff[b]) {
            continue;
        }
        fail(
            "layer {} has {} heads, {} K/V heads and an FFN of {}, layer {} has {}, {} and {}: "
            "stock's {} takes those of the first layer for all{}",
            b, h.n_head[b], h.n_head_kv[b], h.n_ff[b], a, h.n_head[a], h.n_head_kv[a], h.n_ff[a],
            model.architecture().name,
            model.architecture().name == "llama" ? "; --as deci keeps them" : "");
    }
}

}  // namespace

void check_stock_takes(const LayerPlan& plan, const ModelShape& shape) {
    if (plan.size() > max_stock_layers) {
        fail("the plan has {} passes; stock runs models of at most {} layers", plan.size(),
             max_stock_layers);
    }
    if (plan.is_identity()) return;
    for (const Pass& pass : plan) {
        if (shape.layers[static_cast<size_t>(pass.layer)].role != Role::shared_kv_attention) {
            continue;
        }
        fail(
            "layer {} reads the K/V of layer {}; stock finds the owner by counting layers, so only "
            "the identity plan of this model can be baked",
            pass.layer, shape.layers[static_cast<size_t>(pass.layer)].kv_owner);
    }
}

BakeReport bake(const Model& model, const LayerPlan& plan, const std::string& out,
                const BakeOptions& options) {
    check_output(out, model.file(), options.force);
    check_stock_takes(plan, model.shape());
    BakeReport report{.n_pass = plan.size(), .bytes = 0, .warnings = {}};

    std::vector<PassForm> forms(plan.size());
    std::string architecture(model.architecture().name);
    if (options.as == BakeFormat::deci) {
        check_deci(model, plan);
        forms = deci_forms(plan, report.warnings);
        architecture = deci_name;
    } else {
        check_alike(model, plan);
    }
    const std::vector<BakedTensor> tensors = baked_tensors(model, plan, forms);
    const std::vector<gguf::KeyValue> metadata = baked_metadata(model, plan, forms, architecture);

    const auto list = to_write(model.file(), tensors, report.warnings);
    report.bytes = gguf::written_bytes(out, metadata, list);
    check_free_space(out, report.bytes);
    gguf::write(out, metadata, list);
    return report;
}

}  // namespace pleat
