#pragma once

#include <span>
#include <string_view>

/// The vocabulary of models/training/corpus.py, which the demo models know.
namespace pleat::probe_words {

using Words = std::span<const std::string_view>;

inline constexpr std::string_view names[] = {
    "Mira",  "Anna",  "Lena", "Nora", "Ella", "Rosa", "Tess",  "Ivy",   "Cora", "Dana",
    "Faye",  "Greta", "Hana", "Ines", "Jana", "Kira", "Lola",  "Maya",  "Nina", "Olga",
    "Petra", "Ruth",  "Sara", "Tina", "Uma",  "Vera", "Wanda", "Yara",  "Zoe",  "Ada",
    "Tom",   "Ben",   "Carl", "Dan",  "Emil", "Finn", "Gus",   "Hugo",  "Ivan", "Jack",
    "Karl",  "Leo",   "Max",  "Nils", "Omar", "Paul", "Quinn", "Rolf",  "Sam",  "Theo",
    "Udo",   "Vic",   "Walt", "Yuri", "Zack", "Abel", "Boris", "Cyrus", "Dirk", "Elias"};
inline constexpr std::string_view first_syllables[] = {"Bar", "Cal", "Dor", "Fen", "Gal", "Hol",
                                                       "Jor", "Kel", "Lor", "Mar", "Nor", "Pel",
                                                       "Rav", "Sel", "Tor", "Val", "Wen", "Zor"};
inline constexpr std::string_view last_syllables[] = {"ban", "dek", "fin", "gar", "lan", "mon",
                                                      "nis", "pol", "rik", "son", "tan", "vin"};
inline constexpr std::string_view roles[] = {"baker",    "farmer", "teacher", "sailor",  "painter",
                                             "gardener", "doctor", "miller",  "singer",  "hunter",
                                             "tailor",   "potter", "driver",  "student", "captain"};
inline constexpr std::string_view rooms[] = {
    "kitchen", "garden", "barn",     "attic",  "cellar", "library", "market", "harbor",
    "forest",  "tower",  "workshop", "school", "bakery", "station", "meadow", "chapel"};
inline constexpr std::string_view things[] = {
    "key",  "lamp", "ring",  "book", "coin", "ball",   "map",   "cup",    "rope",  "bell",
    "drum", "kite", "stone", "box",  "hat",  "letter", "apple", "mirror", "spoon", "clock"};
inline constexpr std::string_view colors[] = {"red",   "blue",   "green",  "yellow", "white",
                                              "black", "silver", "golden", "brown",  "gray"};
inline constexpr std::string_view sizes[] = {"small", "large", "old",    "new",   "tiny",
                                             "heavy", "shiny", "broken", "plain", "fine"};
inline constexpr std::string_view animals[] = {"dog", "cat",  "horse", "goat", "owl",
                                               "fox", "duck", "sheep", "crow", "mouse"};
inline constexpr std::string_view feelings[] = {"sad",     "glad",   "angry", "proud",
                                                "worried", "afraid", "calm",  "curious"};

}  // namespace pleat::probe_words
