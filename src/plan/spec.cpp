#include "plan/spec.h"

#include <array>

#include "plan/grammar.h"
#include "plan/message.h"
#include "plan/scanner.h"

namespace pleat {
namespace {

// The parts of the one-line form, each with the flag whose grammar it follows.
enum Part : size_t { repeat, layers, skip, drop_attention, drop_ffn, n_part };
constexpr std::array<std::string_view, n_part> part_prefix = {
    "repeat:", "layers:", "skip:", "drop:", "drop-ffn:"};
constexpr std::array<std::string_view, n_part> part_flag = {
    "--repeat-layers", "--layers", "--skip-layers", "--drop-attention", "--drop-ffn"};

void read_part(Part part, Scanner& in, Spec& spec) {
    switch (part) {
        case repeat:
            return read_blocks(in, spec.repeat);
        case layers:
            if (!spec.layers) spec.layers.emplace();
            return read_path(in, *spec.layers);
        case skip:
            return read_set(in, spec.skip);
        case drop_attention:
            return read_set(in, spec.drop_attention);
        case drop_ffn:
            return read_set(in, spec.drop_ffn);
        case n_part:
            break;
    }
}

/// `0,0` alone is how RYS writes the unchanged model.
void remove_baseline(Spec& spec) {
    if (spec.repeat == std::vector<RepeatBlock>{RepeatBlock{}}) spec.repeat.clear();
}

/// The explicit path is the whole path, so that nothing is left to repeat or to skip.
void refuse_combination(const Spec& spec, std::string_view layers_name) {
    if (!spec.layers || (spec.repeat.empty() && spec.skip.empty())) return;
    const bool repeats = !spec.repeat.empty();
    fail_at(repeats ? spec.repeat.front().place : spec.skip.front().place,
            repeats ? "a block to repeat" : "a layer to skip",
            "cannot be combined with {}; that is the whole path, so write it there", layers_name);
}

std::string join(const std::vector<std::string>& texts, char separator) {
    std::string out = texts.front();
    for (size_t i = 1; i < texts.size(); ++i) out += separator + texts[i];
    return out;
}

/// Where the part that starts at `begin` ends: the next + that is not in brackets, where it may be
/// the sign of an exponent.
size_t part_end(std::string_view text, size_t begin) {
    bool brackets = false;
    for (size_t i = begin; i < text.size(); ++i) {
        if (text[i] == '[') brackets = true;
        if (text[i] == ']') brackets = false;
        if (text[i] == '+' && !brackets) return i;
    }
    return text.size();
}

/// Takes the part's prefix; bare text is what --repeat-layers takes.
Part take_prefix(Scanner& in) {
    for (size_t part = 0; part < n_part; ++part) {
        if (in.take(part_prefix[part])) return static_cast<Part>(part);
    }
    if (in.next_is("blocks:")) return repeat;
    Scanner ahead = in;
    const size_t at = ahead.offset();
    const std::string word(ahead.word().substr(0, 40));
    if (!word.empty() && ahead.next_is(":")) {
        fail_at(in.place(at), fmt::format("part {}:", word),
                "is not known; parts are repeat:, layers:, skip:, drop: and drop-ffn:");
    }
    return repeat;
}

template <typename T, typename Print>
std::string print_list(const std::vector<T>& list, std::string_view separator, Print print) {
    std::string out;
    for (const T& item : list) {
        if (!out.empty()) out += separator;
        out += print(item);
    }
    return out;
}

}  // namespace

bool Spec::identity() const { return *this == Spec{}; }

Spec parse_flags(const PlanFlags& flags) {
    const std::array<const std::vector<std::string>*, n_part> given = {
        &flags.repeat_layers, &flags.layers, &flags.skip_layers, &flags.drop_attention,
        &flags.drop_ffn};
    Spec spec;
    for (size_t part = 0; part < n_part; ++part) {
        if (given[part]->empty()) continue;
        const std::string text = join(*given[part], part == repeat ? ';' : ',');
        Scanner in(part_flag[part], text);
        read_part(static_cast<Part>(part), in, spec);
    }
    refuse_combination(spec, "--layers");
    remove_baseline(spec);
    return spec;
}

Spec parse_spec(std::string_view text, std::string_view flag) {
    Spec spec;
    if (Scanner(flag, text).at_end()) return spec;
    for (size_t begin = 0;; ++begin) {
        const size_t end = part_end(text, begin);
        Scanner in(flag, text, begin, end);
        if (in.at_end()) {
            fail_at(in.place(in.offset()), "an empty part",
                    "is not allowed; put + only between parts");
        }
        read_part(take_prefix(in), in, spec);
        if (end == text.size()) break;
        begin = end;
    }
    refuse_combination(spec, "layers:");
    remove_baseline(spec);
    return spec;
}

std::string print_spec(const Spec& spec) {
    const std::array<std::string, n_part> parts = {
        print_list(spec.repeat, ";", print_block),
        spec.layers ? print_list(*spec.layers, ",", print_item) : std::string(),
        print_list(spec.skip, ",", print_item),
        print_list(spec.drop_attention, ",", print_item),
        print_list(spec.drop_ffn, ",", print_item),
    };
    std::string out;
    for (size_t part = 0; part < n_part; ++part) {
        if (parts[part].empty()) continue;
        if (!out.empty()) out += '+';
        out.append(part_prefix[part]).append(parts[part]);
    }
    return out;
}

}  // namespace pleat
