#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/shape.h"

namespace pleat {

/// What tells one model from another, as a profile states it; not the file's name. What is empty
/// was not stated and is not compared. `fingerprint_of` (lab/fingerprint.h) makes one of a file.
struct Fingerprint {
    std::string architecture;
    int64_t n_layer = 0;  ///< without MTP layers
    std::optional<int64_t> n_layer_nextn = {};
    std::optional<int64_t> n_embd = {};
    std::optional<int64_t> n_vocab = {};
    std::string tokenizer_sha256 = {};     ///< kind, tokens, scores, token types, merges
    std::string tensor_types = {};         ///< for people: "f32:65 q4_K:193"
    std::string tensor_types_sha256 = {};  ///< name, type and shape of every tensor
    std::string content_sha256 = {};       ///< the architecture's keys and samples of the weights
    std::string file_type = {};            ///< for people: "Q4_K - Medium"
    std::string name = {};                 ///< general.name, for people
    bool operator==(const Fingerprint&) const = default;

    /// Does it state more than the shape? Only then the hashes of a model are needed.
    bool has_hashes() const;
};

/// The part that a shape knows.
Fingerprint shape_fingerprint(const ModelShape& shape);

/// What to do about a model that is not the one of the profile but can run its plan.
enum class ProfileCheck {
    warn,
    strict,  ///< it is an error
};

/// Holds a model against the one that a profile was made for. Another architecture, shape or
/// tokenizer throws Error that names the field, what was found and expected. Other tensor types,
/// weights or MTP layers come back as warnings of one line each, or are an Error when strict.
/// Parts that either side does not state are not compared.
std::vector<std::string> check_model(const Fingerprint& made_for, const Fingerprint& model,
                                     const std::string& path,
                                     ProfileCheck check = ProfileCheck::warn);

}  // namespace pleat
