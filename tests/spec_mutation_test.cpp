#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "plan/test_shapes.h"
#include "support/spec_invariants.h"

namespace pleat::test {
namespace {

// The fuzz target of fuzz/spec_fuzz.cpp on inputs near valid ones, for where libFuzzer is not.
class Mutator {
  public:
    explicit Mutator(uint32_t seed) : random_(seed) {}

    std::string mutated(std::string text) {
        for (uint32_t n = below(4); n > 0; --n) {
            const uint32_t at = below(static_cast<uint32_t>(text.size()) + 1);
            switch (below(5)) {
                case 0:
                    text.insert(at, piece());
                    break;
                case 1:
                    text.erase(at, below(4));
                    break;
                case 2:
                    text.insert(at, text.substr(below(at + 1), below(12)));
                    break;
                case 3:
                    text.insert(at, 1, static_cast<char>(below(256)));
                    break;
                default:
                    if (at < text.size()) text[at] = piece()[0];
            }
        }
        return text;
    }

  private:
    uint32_t below(uint32_t n) { return static_cast<uint32_t>(random_() % n); }

    std::string piece() {
        static const std::vector<std::string> pieces = {"0",
                                                        "1",
                                                        "11",
                                                        "12",
                                                        "13",
                                                        "..",
                                                        ",",
                                                        ";",
                                                        "-",
                                                        "x2",
                                                        "x1",
                                                        "(",
                                                        ")",
                                                        "[",
                                                        "]",
                                                        "+",
                                                        " ",
                                                        "[-attn]",
                                                        "[-ffn,qk=0.5]",
                                                        "[scale=1e+9]",
                                                        "blocks:",
                                                        "layers:",
                                                        "repeat:",
                                                        "skip:",
                                                        "drop:",
                                                        "drop-ffn:",
                                                        "0,0",
                                                        "1,3",
                                                        "99999999999999999999",
                                                        "nan",
                                                        ".5"};
        return pieces[below(static_cast<uint32_t>(pieces.size()))];
    }

    std::mt19937 random_;
};

TEST(SpecMutation, NothingButAnErrorOfOneLineEscapes) {
    size_t n_parsed = 0;
    size_t n_plan = 0;
    constexpr uint32_t n_case = 40'000;
    for (uint32_t seed = 0; seed < n_case; ++seed) {
        const std::string text = Mutator(seed).mutated(print_spec(random_spec(seed, 12)));
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const SpecOutcome outcome = check_spec_text(text);
        n_parsed += outcome.parsed ? 1 : 0;
        n_plan += outcome.n_plan;
    }
    // Mutations that are all refused, or all accepted, would prove little.
    EXPECT_GT(n_parsed, n_case / 4);
    EXPECT_LT(n_parsed, n_case * 3 / 4);
    EXPECT_GT(n_plan, n_case / 8);
}

}  // namespace
}  // namespace pleat::test
