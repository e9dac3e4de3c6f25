#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
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
    /// A rule that refers to itself; `body` gets its name. Once per wish.
    std::string add_recursive(std::string_view name,
                              const std::function<std::string(const std::string&)>& body);

    /// All rules, `root` first. `root` must have been added by that name.
    std::string text() const;

    /// `atom` (one name, class or parenthesis) `least` to `most` times, without an upper bound when
    /// there is no `most`. Large numbers become rules of blocks, so that llama.cpp's limits hold
    /// and bounds of many strings share what they can. `atom` must not be able to be empty.
    std::string repeat(const std::string& atom, uint64_t least, std::optional<uint64_t> most);

    /// `bytes` as a GBNF literal, quotes and all.
    static std::string literal(std::string_view bytes);

    /// What a reader of the grammar will count (llama.cpp makes rules of parentheses and
    /// repetitions, and elements of characters).
    struct Size {
        size_t bytes = 0;
        size_t rules = 0;
        size_t elements = 0;
    };
    Size size() const { return size_; }

  private:
    std::string free_name(std::string_view wish);
    void store(const std::string& name, std::string body);

    std::map<std::string, std::string, std::less<>> rules_;
    std::map<std::string, std::string, std::less<>> by_body_;  ///< wish and body → name
    std::map<std::string, size_t, std::less<>> last_number_;   ///< of a wish
    Size size_;
};

}  // namespace pleat
