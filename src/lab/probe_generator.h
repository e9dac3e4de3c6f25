#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/probes.h"

namespace pleat {

// Pleat's own probes, in the words and forms that the demo models know (models/training/corpus.py).
// A seed gives the same probes on every platform, and more of them begin with the fewer ones.

/// Sums, differences, chains and products after three solved ones. Asked are only problems that
/// corpus.py keeps out of training text.
std::vector<Probe> arithmetic_probes(uint64_t seed, size_t n);

/// A name's code, told once among `filler` sentences and other codes. Lengths and depths go through
/// a grid; `sub` says which: fill8-depth50 has 8 filler sentences and the fact in the middle.
std::vector<Probe> retrieval_probes(uint64_t seed, size_t n);

/// Orders, places of things, feelings and small counts, with options to choose from.
std::vector<Probe> logic_probes(uint64_t seed, size_t n);

/// Guesses of large integers (square roots, cube roots, products) for chat models, as the text of a
/// file in RYS's math format.
std::string guess_file(uint64_t seed, size_t n);

/// What data/probes/ holds: JSON Lines of the three kinds, and math_guess.json in RYS's format.
/// lab/probe_files_main.cpp writes them.
struct ShippedFile {
    std::string name;
    std::string text;
};
std::vector<ShippedFile> shipped_probe_files();

}  // namespace pleat
