#pragma once

#include <string>
#include <vector>

#include "plan/path.h"
#include "plan/plan.h"
#include "plan/shape.h"
#include "plan/spec.h"

namespace pleat {

/// Takes away what the drop flags name, in every pass of their layers. Throws Error when a layer is
/// not in the path, or may not lose its attention.
void apply_drops(Path& path, const Spec& spec, const ModelShape& shape);

/// What only the finished path can break: it is empty, a recurrent layer lost its attention by a
/// mark, a hybrid has no attention left, a shared-KV consumer no owner, a qk factor no attention.
void check_path(const Path& path, const Spec& spec, const ModelShape& shape);

/// What is legal but often a mistake, one line each.
std::vector<std::string> path_warnings(const Path& path, const ModelShape& shape);

}  // namespace pleat
