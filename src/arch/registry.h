#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "model/architecture.h"
#include "model/model.h"

namespace pleat {

/// The table of supported architectures, one row each.
std::span<const Architecture* const> architectures();

/// Opens a model file: finds its architecture by `general.architecture` and proves the header
/// against it. No weight is read. An architecture that is not in the table is an Error that names
/// it and lists those that are.
std::shared_ptr<Model> open_model(const std::string& path, ModelOptions options = {});

}  // namespace pleat
