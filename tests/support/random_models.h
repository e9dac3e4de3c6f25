#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "support/random_model.h"

namespace pleat::test {

struct NamedModel {
    std::string name;  ///< letters, digits, underscores: may name a test
    RandomModel model;
};

void PrintTo(const NamedModel& named, std::ostream* out);

/// Small models that between them have every form of layer and file of every architecture except
/// llama. Their names begin with the architecture's.
const std::vector<NamedModel>& architecture_models();

/// One form or two of each architecture: what many plans together are held against each alone with.
std::vector<NamedModel> models_for_plans();

}  // namespace pleat::test
