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
        list.push_back({.name = tensor.name,
                        .type = tensor.source->type,
                        .ne = tensor.ne(),
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
    const LayerHparams& a = h.layers[static_cast<size_t>(plan[0].layer)];
    for (const Pass& pass : plan) {
        const LayerHparams& b = h.layers[static_cast<size_t>(pass.layer)];
        if (a.n_head == b.n_head && a.n_head_kv == b.n_head_kv && a.n_ff == b.n_ff) continue;
        fail(
            "layer {} has {} heads, {} K/V heads and an FFN of {}, layer {} has {}, {} and {}: "
            "stock's {} takes those of the first layer for all{}",
            pass.layer, b.n_head, b.n_head_kv, b.n_ff, plan[0].layer, a.n_head, a.n_head_kv, a.n_ff,
            model.architecture().name,
            model.architecture().name == "llama" ? "; --as deci keeps them" : "");
    }
}

}  // namespace

void check_stock_takes(const LayerPlan& plan) {
    if (plan.size() > max_stock_layers) {
        fail("the plan has {} passes; stock runs models of at most {} layers", plan.size(),
             max_stock_layers);
    }
}

BakeReport bake(const Model& model, const LayerPlan& plan, const std::string& out,
                const BakeOptions& options) {
    check_output(out, model.file(), options.force);
    check_stock_takes(plan);
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
