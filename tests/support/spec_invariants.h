#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "plan/plan.h"
#include "plan/spec.h"
#include "plan/test_shapes.h"

namespace pleat::test {

struct SpecOutcome {
    bool parsed = false;
    size_t n_plan = 0;  ///< how many of the models accept it
};

/// What holds for every text: it is refused with one line of printable ASCII, or it reads back as
/// printed, and every plan it makes comes back from its canonical text. Throws std::logic_error
/// when one of these does not hold, and lets other exceptions through.
inline SpecOutcome check_spec_text(std::string_view text) {
    static const std::vector<ModelShape> shapes = {
        llama_shape({.n_layer = 1}), llama_shape({.n_layer = 13}), hybrid_shape({.n_layer = 12}),
        window_shape({.n_layer = 12, .n_swa = 64}), shared_shape({.n_layer = 12, .n_swa = 64})};
    const auto require = [&](bool holds, std::string_view what) {
        if (!holds) throw std::logic_error(fmt::format("{}: spec \"{}\"", what, text));
    };
    const auto require_one_line = [&](std::string_view message) {
        const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
        require(std::ranges::all_of(message, printable), "a message is not one line of ASCII");
        require(message.size() < 1'000, "a message is too long");
    };
    SpecOutcome outcome;
    Spec spec;
    try {
        spec = parse_spec(text);
    } catch (const Error& error) {
        require_one_line(error.what());
        return outcome;
    }
    outcome.parsed = true;
    require(parse_spec(print_spec(spec)) == spec, "does not read back");
    for (const ModelShape& shape : shapes) {
        std::optional<LayerPlan> plan;
        try {
            plan = LayerPlan::resolve(spec, shape);
        } catch (const Error& error) {
            require_one_line(error.what());
            continue;
        }
        ++outcome.n_plan;
        const Spec canonical = parse_flags({.layers = {plan->canonical()}});
        const LayerPlan again = LayerPlan::resolve(canonical, shape);
        require(*plan == again && plan->slots() == again.slots(), "is another plan when printed");
    }
    return outcome;
}

}  // namespace pleat::test
