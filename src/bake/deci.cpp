#include "bake/deci.h"

#include <fmt/format.h>

#include "base/error.h"

namespace pleat {

void check_deci(const Model& model, const LayerPlan& plan) {
    const std::string_view name = model.architecture().name;
    if (name != "llama") {
        fail("--as deci: the model's architecture is {}; only llama can be written as deci", name);
    }
    if (model.hparams().n_expert > 0) {
        fail("--as deci: the model has {} experts; stock's deci has none",
             model.hparams().n_expert);
    }
    for (const Pass& pass : plan) {
        for (const NamedTensor& tensor : model.layer_tensors(pass.layer)) {
            if (tensor.part != Part::ffn || !tensor.info->name.ends_with(".scale")) continue;
            fail("--as deci: the model has {}; stock's deci ignores the scales of an FFN",
                 tensor.info->name);
        }
    }
}

std::vector<PassForm> deci_forms(const LayerPlan& plan, std::vector<std::string>& warnings) {
    std::vector<PassForm> forms(plan.size());
    const auto warn = [&](size_t pass, std::string_view what, std::string_view why) {
        warnings.push_back(
            fmt::format("pass {} (layer {}): {} is dropped by zeros, stock computes "
                        "it all the same: {}",
                        pass, plan[pass].layer, what, why));
    };
    for (size_t i = 0; i < plan.size(); ++i) {
        const Pass& pass = plan[i];
        PassForm& form = forms[i];
        form.without_attention = !pass.attention && i > 0;
        form.without_ffn = form.without_attention && !pass.ffn && i + 1 < plan.size();
        if (!pass.attention && !form.without_attention) {
            warn(i, "attention", "deci reads the head size from its first layer");
        }
        if (!pass.ffn && !form.without_ffn) {
            warn(i, "the FFN",
                 pass.attention              ? "deci has no layer of an attention alone"
                 : i == 0 && plan.size() > 1 ? "it is the first layer, which keeps its shape"
                                             : "deci's last layer needs an FFN");
        }
    }
    return forms;
}

}  // namespace pleat
