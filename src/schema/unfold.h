#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "schema/constraints.h"

namespace pleat {

/// Follows references, joins what holds together (allOf, keywords beside a reference) and takes
/// choices (anyOf, oneOf) apart, so that what remains is a list of alternatives without either.
/// Bounded by SchemaLimits: `depth` of what leads on, `steps` in all.
class Unfolder {
  public:
    /// The schema must outlive it. Throws Error when its JSON is too large or too deep, or holds
    /// text that is not UTF-8.
    Unfolder(const nlohmann::ordered_json& root, const SchemaLimits& limits);

    SchemaPart root() const { return {&root_, "#"}; }

    /// Of several schemas that all must hold; those that plainly exclude everything are left out,
    /// and values of enum and const are only those that all the rest allows. Throws Error for
    /// what is not supported, for references that lead nowhere or back to themselves, and for a
    /// oneOf whose alternatives cannot be told apart.
    std::vector<Constraints> alternatives(const std::vector<SchemaPart>& schemas);

    /// Whether a value is valid, by the specification and not only by what the grammar writes.
    bool allows(const std::vector<SchemaPart>& schemas, const nlohmann::ordered_json& value);

  private:
    struct Choice {
        SchemaPart owner;
        std::string keyword;
        std::vector<const nlohmann::ordered_json*> path;  ///< what led to it
    };
    struct State {
        std::vector<SchemaPart> plain;
        std::vector<Choice> choices;
        std::vector<const nlohmann::ordered_json*> path;  ///< open while visiting
        bool impossible = false;
    };

    void step(const SchemaPart& at, size_t n = 1);
    void visit(State& state, const SchemaPart& schema);
    SchemaPart resolve(const SchemaPart& reference) const;
    std::vector<Constraints> expand(State state, int depth);
    std::vector<Constraints> expand_choice(const State& state, const Choice& choice, int depth);
    void take_tag(State& state, const Choice& choice);

    bool allows(const Constraints& alternative, const nlohmann::ordered_json& value);
    bool allows_object(const Constraints& alternative, const nlohmann::ordered_json& value);
    bool allows_array(const Constraints& alternative, const nlohmann::ordered_json& value);

    /// Whether no value that the grammar writes for `written` is valid for `other`; false when that
    /// cannot be told.
    bool excludes(const Constraints& written, const Constraints& other, int depth);
    bool excludes_objects(const Constraints& written, const Constraints& other, int depth);
    bool excludes_property(const Constraints& written, const Constraints& other,
                           const std::string& name, int depth);
    void check_exclusive(const Choice& choice,
                         const std::vector<std::vector<Constraints>>& branches);

    const nlohmann::ordered_json& root_;
    const SchemaLimits& limits_;
    size_t steps_ = 0;
    std::deque<nlohmann::ordered_json> made_;  ///< schemas that stand nowhere
};

}  // namespace pleat
