#include "cli/plan_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "base/units.h"
#include "plan/cost_ratio.h"
#include "plan/path.h"
#include "plan_file/cost_json.h"

namespace pleat::cli {
namespace {

using nlohmann::ordered_json;

PlanCost identity_cost(const ModelShape& shape, const CacheSettings& settings) {
    return plan_cost(LayerPlan::resolve({}, shape), shape, settings);
}

std::string seam_text(const LayerPlan& plan) {
    std::string text;
    for (const Seam& seam : plan.seams()) {
        text += fmt::format("{}{} -> {} (pass {})", text.empty() ? "" : ", ", seam.from, seam.to,
                            seam.pass);
    }
    return text.empty() ? "none" : text;
}

std::string copies_text(const LayerPlan& plan) {
    std::string text;
    for (const InsertedCopy& copy : plan.inserted_copies()) {
        text += fmt::format("{}[{}, {}) at pass {}", text.empty() ? "" : ", ", copy.begin, copy.end,
                            copy.pass);
    }
    return text.empty() ? "none" : text;
}

/// What the numbers do not explain by themselves.
std::vector<std::string> notes(const LayerPlan& plan, const ModelShape& shape) {
    std::vector<int32_t> consumers;
    std::vector<bool> runs(shape.layers.size());
    std::vector<bool> attends(shape.layers.size());
    for (const Pass& pass : plan) {
        runs[static_cast<size_t>(pass.layer)] = true;
        if (pass.attention) attends[static_cast<size_t>(pass.layer)] = true;
    }
    for (size_t i = 0; i < attends.size(); ++i) {
        if (!runs[i] || attends[i] || shape.layers[i].role != Role::shared_kv_attention) continue;
        consumers.push_back(static_cast<int32_t>(i));
    }
    if (consumers.empty()) return {};
    const bool one = consumers.size() == 1;
    return {fmt::format(
        "layer{} {} read{} the K/V of other layers and own{} none: to drop {} attention saves "
        "compute and weights, but no K/V",
        one ? "" : "s", print_layers(consumers), one ? "s" : "", one ? "s" : "",
        one ? "its" : "their")};
}

std::string note_lines(const LayerPlan& plan, const ModelShape& shape) {
    std::string text;
    for (const std::string& note : notes(plan, shape)) text += fmt::format("note: {}\n", note);
    return text;
}

std::string warning_lines(const LayerPlan& plan) {
    std::string text;
    for (const std::string& warning : plan.warnings())
        text += fmt::format("warning: {}\n", warning);
    return text;
}

std::string cost_row(std::string_view name, const std::string& value, uint64_t plan,
                     uint64_t identity) {
    return fmt::format("  {:<26} {:>12}   {:.3f} x identity\n", name, value,
                       cost_ratio(plan, identity));
}

}  // namespace

std::string plan_text(const LayerPlan& plan, const ModelShape& shape,
                      const CacheSettings& settings) {
    const PlanCost cost = plan_cost(plan, shape, settings);
    const PlanCost base = identity_cost(shape, settings);
    std::string text = fmt::format(
        "model     {} {}, {} layers\nplan      {}\nhash      {}\npasses    {} over {} layers\n"
        "seams     {}\ninserted  {}\n",
        shape.architecture, shape.name, shape.n_layer, plan.canonical(), plan.hash(), plan.size(),
        shape.n_layer, seam_text(plan), copies_text(plan));
    text += fmt::format("costs     (context {} tokens, {} sequence{}, K {}, V {})\n",
                        settings.n_ctx, settings.n_seq, settings.n_seq == 1 ? "" : "s",
                        settings.type_k.name, settings.type_v.name);
    const auto bytes = [&](std::string_view name, uint64_t p, uint64_t i) {
        text += cost_row(name, format_bytes(p), p, i);
    };
    bytes("weights resident", cost.weight_resident_bytes, base.weight_resident_bytes);
    bytes("weights read per token", cost.weight_read_bytes, base.weight_read_bytes);
    bytes("KV per token", cost.kv_bytes_per_token(), base.kv_bytes_per_token());
    bytes("KV cache, full", cost.kv_bytes_full, base.kv_bytes_full);
    if (base.kv_bytes_window > 0) {
        bytes("KV cache, window", cost.kv_bytes_window, base.kv_bytes_window);
    }
    if (base.state_bytes > 0) bytes("recurrent state", cost.state_bytes, base.state_bytes);
    text += cost_row("matmul FLOPs per token", format_count(cost.flops), cost.flops, base.flops);
    text += fmt::format("  {:<26} {:>12}   of the identity's\n", "predicted decode time",
                        fmt::format("{:.3f} x", predicted_decode_ratio(cost, base)));
    return text + note_lines(plan, shape) + warning_lines(plan);
}

ordered_json plan_json(const LayerPlan& plan, const ModelShape& shape,
                       const CacheSettings& settings) {
    const PlanCost cost = plan_cost(plan, shape, settings);
    const PlanCost base = identity_cost(shape, settings);
    ordered_json passes = ordered_json::array();
    for (size_t i = 0; i < plan.size(); ++i) {
        const Pass& p = plan[i];
        passes.push_back({{"pass", i},
                          {"layer", p.layer},
                          {"role", role_name(shape.layers[static_cast<size_t>(p.layer)].role)},
                          {"slot", p.slot == no_slot ? ordered_json() : ordered_json(p.slot)},
                          {"attention", p.attention},
                          {"ffn", p.ffn},
                          {"scale", p.scale},
                          {"qk_scale", p.qk_scale}});
    }
    ordered_json seams = ordered_json::array();
    for (const Seam& s : plan.seams()) {
        seams.push_back({{"pass", s.pass}, {"from", s.from}, {"to", s.to}});
    }
    ordered_json copies = ordered_json::array();
    for (const InsertedCopy& c : plan.inserted_copies()) {
        std::vector<int32_t> layers;
        for (int32_t layer = c.begin; layer < c.end; ++layer) layers.push_back(layer);
        copies.push_back(
            {{"begin", c.begin}, {"end", c.end}, {"pass", c.pass}, {"layers", layers}});
    }
    return {{"model",
             {{"architecture", shape.architecture},
              {"name", shape.name},
              {"n_layer", shape.n_layer},
              {"n_embd", shape.n_embd},
              {"n_vocab", shape.n_vocab}}},
            {"plan", plan.canonical()},
            {"spec", "layers:" + plan.canonical()},
            {"hash", plan.hash()},
            {"identity", plan.is_identity()},
            {"n_layer", shape.n_layer},
            {"n_pass", plan.size()},
            {"passes", passes},
            {"seams", seams},
            {"inserted", copies},
            {"context",
             {{"n_ctx", settings.n_ctx},
              {"n_seq", settings.n_seq},
              {"n_ubatch", settings.n_ubatch},
              {"type_k", settings.type_k.name},
              {"type_v", settings.type_v.name}}},
            {"costs", cost_json(cost)},
            {"identity_costs", cost_json(base)},
            {"ratios", cost_ratios_json(cost, base)},
            {"notes", notes(plan, shape)},
            {"warnings", plan.warnings()}};
}

std::string load_log(const LayerPlan& plan, const ModelShape& shape,
                     const CacheSettings& settings) {
    const PlanCost cost = plan_cost(plan, shape, settings);
    const PlanCost base = identity_cost(shape, settings);
    std::string text =
        fmt::format("plan: {}{}\n", plan.canonical(), plan.is_identity() ? " (identity)" : "");
    if (!plan.is_identity()) text += fmt::format("seams: {}\n", seam_text(plan));
    text += fmt::format("passes: {} over {} layers, hash {}\n", plan.size(), shape.n_layer,
                        plan.hash());
    text += fmt::format("cache: {} for {} tokens x {} ({:.3f} x identity's {}), {} per token\n",
                        format_bytes(cost.cache_bytes()), settings.n_ctx, settings.n_seq,
                        cost_ratio(cost.cache_bytes(), base.cache_bytes()),
                        format_bytes(base.cache_bytes()), format_bytes(cost.kv_bytes_per_token()));
    text +=
        fmt::format("weights: {} resident, {} read per token ({:.3f} x identity)\n",
                    format_bytes(cost.weight_resident_bytes), format_bytes(cost.weight_read_bytes),
                    cost_ratio(cost.weight_read_bytes, base.weight_read_bytes));
    return text + warning_lines(plan);
}

}  // namespace pleat::cli
