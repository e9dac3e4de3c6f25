#pragma once

#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace pleat::test {

/// Whether a text is a sentence of a GBNF grammar, by following all readings at once. For grammars
/// without left recursion; tokens (<...>) are not known.
class Gbnf {
  public:
    /// Throws Error when the text does not parse.
    explicit Gbnf(std::string_view text);
    ~Gbnf();

    bool accepts(std::string_view text) const;
    /// A sentence drawn at random; short ones once `size` characters are written.
    std::string sentence(std::mt19937& random, size_t size) const;

    struct Node;

  private:
    std::map<std::string, std::unique_ptr<Node>, std::less<>> rules_;
};

}  // namespace pleat::test
