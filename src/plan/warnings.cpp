#include <algorithm>

#include "plan/message.h"
#include "plan/rules.h"

namespace pleat {
namespace {

std::string name_layers(const std::vector<int32_t>& layers) {
    return fmt::format("layer{} {}", layers.size() == 1 ? "" : "s", print_layers(layers));
}

}  // namespace

std::vector<std::string> path_warnings(const Path& path, const ModelShape& shape) {
    std::vector<int> visits(shape.layers.size());
    std::vector<bool> no_attention(shape.layers.size());
    for (const Pass& pass : path.passes) {
        ++visits[static_cast<size_t>(pass.layer)];
        if (!pass.attention) no_attention[static_cast<size_t>(pass.layer)] = true;
    }
    const int32_t boundary = std::max(3, shape.n_layer / 8);
    std::vector<int32_t> repeated_first;
    std::vector<int32_t> repeated_last;
    std::vector<int32_t> recurrent_left_out;
    std::vector<int32_t> dropped;
    int32_t n_run = 0;
    for (int32_t layer = 0; layer < shape.n_layer; ++layer) {
        const auto i = static_cast<size_t>(layer);
        if (visits[i] > 0) ++n_run;
        if (visits[i] > 1 && layer < boundary) repeated_first.push_back(layer);
        if (visits[i] > 1 && layer >= shape.n_layer - boundary) repeated_last.push_back(layer);
        if (visits[i] == 0 && shape.layers[i].role == Role::recurrent) {
            recurrent_left_out.push_back(layer);
        }
        if (no_attention[i]) dropped.push_back(layer);
    }

    std::vector<std::string> warnings;
    const auto warn_boundary = [&](const std::vector<int32_t>& layers, const char* end) {
        if (layers.empty()) return;
        warnings.push_back(
            fmt::format("a repeat touches the {} {} layers ({}); boundary layers often break "
                        "models, which and how far depends on the model",
                        end, boundary, name_layers(layers)));
    };
    warn_boundary(repeated_first, "first");
    warn_boundary(repeated_last, "last");
    if (2 * n_run < shape.n_layer) {
        warnings.push_back(fmt::format("only {} of {} layers are run{}", n_run, shape.n_layer,
                                       path.items.empty()
                                           ? ""
                                           : "; --layers is the whole path, was --repeat-layers "
                                             "meant?"));
    }
    if (!recurrent_left_out.empty()) {
        warnings.push_back(fmt::format("recurrent {} {} skipped", name_layers(recurrent_left_out),
                                       recurrent_left_out.size() == 1 ? "is" : "are"));
    }
    if (visits.back() == 0) {
        warnings.push_back(
            fmt::format("the path leaves out the last layer, {}", shape.n_layer - 1));
    }
    if (shape.hybrid() && !dropped.empty()) {
        warnings.push_back(
            fmt::format("attention is dropped in a hybrid model ({}); judge it by retrieval, not "
                        "by perplexity alone",
                        name_layers(dropped)));
    }
    return warnings;
}

}  // namespace pleat
