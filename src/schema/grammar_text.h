#pragma once

#include <map>
#include <string>
#include <string_view>

namespace pleat {

/// A GBNF grammar as it is put together: named rules, each once. The text begins with `root`.
class GrammarText {
  public:
    /// A rule under a name made of `name` (letters, digits and dashes; others become dashes) that
    /// no other rule has; the same body under the same wish is the same rule. Returns its name.
    std::string add(std::string_view name, std::string body);
    /// A rule whose body comes later, for references to itself.
    std::string reserve(std::string_view name);
    void define(const std::string& reserved, std::string body);

    /// All rules, `root` first. `root` must have been added by that name.
    std::string text() const;

    /// `bytes` as a GBNF literal, quotes and all.
    static std::string literal(std::string_view bytes);

  private:
    std::map<std::string, std::string, std::less<>> rules_;
};

}  // namespace pleat
