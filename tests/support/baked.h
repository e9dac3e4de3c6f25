#pragma once

#include <memory>
#include <string>
#include <utility>

#include "arch/registry.h"
#include "bake/bake.h"
#include "plan/plan.h"
#include "plan/spec.h"
#include "support/temp_file.h"

namespace pleat::test {

/// The plan that SPEC says as a file of its own; `report`, when given, gets what bake said.
inline TempFile bake_spec(const std::string& path, const std::string& spec,
                          const BakeOptions& options = {}, BakeReport* report = nullptr) {
    TempFile out("-baked.gguf");
    const std::shared_ptr<Model> model = open_model(path);
    const LayerPlan plan = LayerPlan::resolve(parse_spec(spec), model->shape());
    BakeReport said = bake(*model, plan, out.path(), options);
    if (report != nullptr) *report = std::move(said);
    return out;
}

}  // namespace pleat::test
