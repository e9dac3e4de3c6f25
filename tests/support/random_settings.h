#pragma once

#include "support/random_model.h"

namespace pleat::test {

/// Throws Error when the settings contradict each other or mean nothing to the architecture.
void check(const RandomModel& model);

}  // namespace pleat::test
