#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "lab/profile.h"
#include "lab/scores.h"
#include "plan_file/fingerprint.h"

namespace pleat {

// How the lab's files write what they have in common. Texts that are no UTF-8 get replacement
// characters: they are for people.

/// One line, or several with `indent`.
std::string dump_json(const nlohmann::ordered_json& json, int indent = -1);

/// Adds the field unless the number is absent, NaN or infinite, which JSON cannot say.
void add_finite(nlohmann::ordered_json& object, const char* name, std::optional<double> number);

nlohmann::ordered_json score_json(const Score& score);
nlohmann::ordered_json difference_json(const Difference& difference);
nlohmann::ordered_json data_source_json(const DataSource& source);
/// Only the fields that are stated, so that the reader compares no others.
nlohmann::ordered_json fingerprint_json(const Fingerprint& fingerprint);

}  // namespace pleat
