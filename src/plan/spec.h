#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pleat {

/// Where in a flag's text an item stands, for messages: counted from 1; 0 when there is no text.
/// Takes no part in comparing.
struct Place {
    std::string flag = {};  ///< "--repeat-layers", "--spec", "plan.json", ...
    std::string text = {};  ///< the flag's text as messages quote it: escaped, cut when it is long
    size_t character = 0;
    bool operator==(const Place&) const { return true; }
};

/// A block to run again: layers [begin, end), `traversals` times in all (2 = once more).
struct RepeatBlock {
    int64_t begin = 0;
    int64_t end = 0;
    int64_t traversals = 2;
    Place place = {};
    bool operator==(const RepeatBlock&) const = default;
};

/// Marks of a `--layers` item: what these passes do differently.
struct Marks {
    bool attention = true;
    bool ffn = true;
    float scale = 1.0F;
    float qk_scale = 1.0F;
    bool operator==(const Marks&) const = default;
};

/// `n`, `a..b` (inclusive, descending when b < a), `a..`, `..b`, `..`. An absent end is the first
/// or last layer; a single number has first == last.
struct LayerItem {
    std::optional<int64_t> first = {};
    std::optional<int64_t> last = {};
    Marks marks = {};
    Place place = {};
    bool operator==(const LayerItem&) const = default;
};

/// What a person wrote, parsed but not yet held against a model. All empty = identity.
struct Spec {
    std::vector<RepeatBlock> repeat = {};  ///< in the order written; `0,0` alone leaves none
    std::optional<std::vector<LayerItem>> layers = {};  ///< the explicit path
    std::vector<LayerItem> skip = {};                   ///< sets: no marks
    std::vector<LayerItem> drop_attention = {};
    std::vector<LayerItem> drop_ffn = {};
    bool operator==(const Spec&) const = default;

    bool identity() const;
};

/// The plan flags as a command line gave them; each may be given several times.
struct PlanFlags {
    std::vector<std::string> repeat_layers = {};
    std::vector<std::string> layers = {};
    std::vector<std::string> skip_layers = {};
    std::vector<std::string> drop_attention = {};
    std::vector<std::string> drop_ffn = {};
};

/// Parses the flags' grammars (docs/plans.md). Throws Error that names flag, item, place, rule and
/// what would be valid. Combinations that are refused are refused here.
Spec parse_flags(const PlanFlags& flags);

/// Parses the one-line form SPEC: empty, or parts joined by `+`, each `repeat:`, `layers:`,
/// `skip:`, `drop:` or `drop-ffn:` with that flag's grammar; bare text is `repeat:`. `@file` is the
/// caller's.
Spec parse_spec(std::string_view text, std::string_view flag = "--spec");

/// The one-line form of a spec; parse_spec(print_spec(s)) == s.
std::string print_spec(const Spec& spec);

}  // namespace pleat
