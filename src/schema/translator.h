#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schema/constraints.h"
#include "schema/grammar_text.h"
#include "schema/unfold.h"

namespace pleat {

/// Writes the rules of one schema. Objects and arrays are named first and written later, one after
/// the other, so that references to themselves work and nothing recurses.
class SchemaTranslator {
  public:
    SchemaTranslator(GrammarText& grammar, const nlohmann::ordered_json& schema,
                     const SchemaLimits& limits);

    /// The name of the rule of the whole schema.
    std::string translate();

  private:
    /// Rules that a rule cannot end without: one of each list.
    using Needs = std::vector<std::vector<std::string>>;

    struct Waiting {
        std::string rule;
        Constraints constraints;
        uint8_t type;
    };

    /// The name of a rule; nothing when no value is allowed. `wish` is the end of its name.
    std::optional<std::string> rule_for(const std::vector<SchemaPart>& schemas,
                                        const std::string& wish);
    void add_alternative(const Constraints& alternative, const std::string& wish,
                         std::vector<std::string>& rules);
    std::string one_of(std::span<const std::string> sorted, size_t n_done);
    std::string add_values(const Constraints& alternative);
    std::optional<std::string> add_number_rule(const Constraints& alternative);
    std::optional<std::string> add_string_rule(const Constraints& alternative);
    std::string later(const Constraints& alternative, uint8_t type, const std::string& wish);
    void check_size(const SchemaPart& at) const;
    void check_endings(const SchemaPart& at) const;

    std::string array_body(const Constraints& array, Needs& needs);
    /// The rules of an array's items, and how many it may have.
    struct Items {
        std::vector<std::string> prefix = {};
        std::string more = {};  ///< of each that follows; empty: none may
        uint64_t least = 0;
        std::optional<uint64_t> most = {};
    };
    Items items_of(const Constraints& array);
    std::string more_items(const Items& items);
    std::string object_body(const Constraints& object, Needs& needs);

    /// A property, or all that are not listed, as `"name": value`.
    struct Pair {
        std::string rule;
        bool required = false;
    };
    struct Others {
        std::string rule;
        uint64_t least = 0;
        std::optional<uint64_t> most = {};
    };
    std::vector<Pair> listed_pairs(const Constraints& object, Needs& needs);
    std::optional<std::string> others_rule(const Constraints& object);
    std::string other_key(const Constraints& object);
    std::string key_except(const std::vector<std::string>& names);
    Others others(const Constraints& object, const std::vector<Pair>& pairs);
    std::string pairs_text(const std::vector<Pair>& pairs, const Others& others);
    std::string some_of(const std::vector<Pair>& pairs, size_t first, size_t last,
                        const std::string& end);
    std::string rest_of(const std::vector<Pair>& pairs, size_t first, size_t last);

    GrammarText& grammar_;
    const SchemaLimits& limits_;
    Unfolder unfolder_;
    std::map<std::pair<std::vector<const nlohmann::ordered_json*>, uint8_t>, std::string> known_;
    std::vector<Waiting> waiting_;
    std::map<std::string, Needs> needs_;  ///< of rules that are made of other rules
    size_t n_rules_ = 0;
};

}  // namespace pleat
