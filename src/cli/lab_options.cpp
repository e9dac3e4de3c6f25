#include "cli/lab_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "cli/numbers.h"
#include "cli/text_file.h"

namespace pleat::cli {
namespace {

double seconds_now() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(now).count();
}

std::string name_of(const std::string& path) {
    return std::filesystem::path(path).filename().string();
}

/// The same items twice would look like twice as many.
void refuse_twice(const std::vector<std::string>& paths, std::string_view flag) {
    for (size_t i = 0; i < paths.size(); ++i) {
        for (size_t j = 0; j < i; ++j) {
            const bool files = paths[i] != "-" && paths[j] != "-";
            const bool same =
                paths[i] == paths[j] ||
                (files && data_source(paths[i], 0).sha256 == data_source(paths[j], 0).sha256);
            if (same) fail("{} {}: the same file is given as {}", flag, paths[i], paths[j]);
        }
    }
}

/// h:mm:ss, when a fraction of the work took so many seconds.
std::string time_left(double fraction, double seconds) {
    const double left = fraction > 0.0 ? seconds * (1.0 - fraction) / fraction : 0.0;
    const auto whole = static_cast<int64_t>(left);
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

/// All that a probe asks and expects.
std::string question_of(const Probe& probe) {
    std::string text = probe.kind + '\0' + probe.prompt + '\0' + probe.answer;
    for (const ChatMessage& message : probe.messages) {
        text += '\0' + message.role + '\0' + message.content;
    }
    return text;
}

}  // namespace

std::vector<std::string> ScoringOptions::inputs(std::vector<std::string> all) const {
    all.insert(all.end(), texts_.begin(), texts_.end());
    all.insert(all.end(), probes_.begin(), probes_.end());
    return all;
}

uint64_t parse_bytes(const std::string& text, std::string_view flag) {
    uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, number);
    const std::string_view unit(next, static_cast<size_t>(end - next));
    unsigned shift = 0;
    if (unit == "K" || unit == "KiB") shift = 10;
    if (unit == "M" || unit == "MiB") shift = 20;
    if (unit == "G" || unit == "GiB") shift = 30;
    if (error != std::errc{} || number == 0 || (shift == 0 && !unit.empty()) ||
        number > UINT64_MAX >> shift) {
        fail("{} {}: expected a number of bytes above 0, with K, M or G behind it", flag, text);
    }
    return number << shift;
}

void ScoringOptions::add(CLI::App& app) {
    const std::string group = "Scoring";
    const auto files = [&](const char* name, std::vector<std::string>& target, const char* help) {
        app.add_option(name, target, help)
            ->group(group)
            ->allow_extra_args(false)
            ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    files("--text", texts_,
          "Text file: perplexity, KL divergence and top-1 agreement (repeatable)");
    files("--probes", probes_, "Probe file (JSON Lines or RYS): right answers (repeatable)");
    app.add_option("-c,--ctx-size", n_ctx_, "Tokens per chunk of a text; the second half is scored")
        ->check(whole_number(8, 1 << 20))
        ->capture_default_str()
        ->group(group);
    app.add_option("--chunks", max_chunks_, "Score at most this many chunks of each text")
        ->check(whole_number(1, INT32_MAX))
        ->group(group);
    app.add_option("--memory", memory_, "Memory for what plans share, as 512M or 2G")
        ->capture_default_str()
        ->group(group);
    CLI::Option* const generate =
        app.add_flag(
               "--generate", generate_,
               "Let the plans write the answers to probes, instead of asking whether the right "
               "ones are the likeliest; RYS probes need it")
            ->group(group);
    app.add_option("--min-parse", min_parse_,
                   "With --generate: refuse when fewer of the identity plan's answers can be read")
        ->needs(generate)
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str()
        ->group(group);
}

void ScoringOptions::add_measures(CLI::App& app) {
    app.add_option("--measures", measures_,
                   "Only these, separated by commas: ppl, kl, top1, exact, answer_nll, with "
                   "--generate probe, parsed, length_ok, cut (default: all)")
        ->delimiter(',')
        ->allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->group("Scoring");
}

Workload ScoringOptions::workload(const Tokenizer& tokenizer) const {
    if (!given()) {
        fail("nothing to score on: name a text with --text or a probe file with --probes");
    }
    if (generate_ && probes_.empty()) fail("--generate needs probes to answer: --probes FILE");
    Workload workload;
    add_texts(workload, tokenizer);
    const std::vector<Probe> probes = read_probes();
    if (generate_) {
        workload.add_questions(probes, tokenizer);
    } else {
        workload.add_probes(probes, tokenizer);
    }
    try {
        workload.want_measures(measures_);
    } catch (const Error& error) {
        fail("--measures: {}", error.what());
    }
    return workload;
}

void ScoringOptions::warn_of_length(const Workload& workload, const ModelShape& shape) const {
    const auto n = std::ranges::count_if(workload.sequences(), [&](const ScoredSequence& it) {
        return it.item.tokens.size() > shape.n_ctx_train;
    });
    if (n == 0) return;
    fmt::print(stderr,
               "warning: {} of {} prompts and chunks are longer than the {} tokens that the "
               "model was trained on\n",
               n, workload.sequences().size(), shape.n_ctx_train);
}

void ScoringOptions::check_answers(const Scorer& scorer, const LayerPlan& identity,
                                   const Workload& workload) const {
    require_readable_answers(scorer, identity, workload, min_parse_);
}

void ScoringOptions::add_texts(Workload& workload, const Tokenizer& tokenizer) const {
    refuse_twice(texts_, "--text");
    for (const std::string& path : texts_) {
        std::string text = read_text_file(path, "the text");
        if (text.starts_with("GGUF")) fail("--text {}: is a model file, not a text", path);
        // Stock's tools leave out one newline at the end of a file.
        if (text.ends_with('\n')) text.pop_back();
        const auto same_name = [&](const std::string& p) { return name_of(p) == name_of(path); };
        const bool unique = std::ranges::count_if(texts_, same_name) == 1;
        workload.add_text(unique ? name_of(path) : path, tokenizer.tokenize(text, true, false),
                          n_ctx_, tokenizer.add_bos() ? tokenizer.bos() : -1,
                          max_chunks_.value_or(SIZE_MAX));
    }
}

std::vector<Probe> ScoringOptions::read_probes() const {
    refuse_twice(probes_, "--probes");
    std::vector<Probe> all;
    std::map<std::string, std::string> file_of;  // by what is asked
    for (const std::string& path : probes_) {
        for (Probe& probe : read_probe_file(path)) {
            const auto [before, is_new] = file_of.emplace(question_of(probe), path);
            if (!is_new && before->second != path) {
                fail("--probes {}: its probe {} is in {}, too, and would count twice", path,
                     probe.id, before->second);
            }
            all.push_back(std::move(probe));
        }
    }
    return all;
}

SweepSettings ScoringOptions::sweep_settings(const ContextSettings& context) const {
    return {.context = context,
            .memory_budget = parse_bytes(memory_, "--memory"),
            .rows_per_batch = context.cache.n_ubatch};
}

std::vector<DataSource> ScoringOptions::sources(const Workload& workload) const {
    std::vector<DataSource> list;
    for (const auto* const paths : {&texts_, &probes_}) {
        for (const std::string& path : *paths) {
            list.push_back(data_source(path, workload.sequences().size()));
        }
    }
    return list;
}

ProgressLine::ProgressLine(std::string title, bool quiet)
    : title_(std::move(title)),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) != 0),
      start_(seconds_now()) {}

ProgressLine::~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r{:78}\r", "");
}

void ProgressLine::show(double fraction) {
    if (quiet_) return;
    const double now = seconds_now();
    if (!terminal_) {
        // A log gets a line now and then.
        if (now - std::max(last_, start_) < 60.0) return;
        last_ = now;
        fmt::print(stderr, "{} {:.1f} %, {} left\n", title_, fraction * 100.0,
                   time_left(fraction, now - start_));
        return;
    }
    if (now - last_ < 0.2 || now - start_ < 0.5) return;
    last_ = now;
    shown_ = true;
    fmt::print(stderr, "\r{:<30} {:5.1f} %  {} left ", title_, fraction * 100.0,
               time_left(fraction, now - start_));
    std::fflush(stderr);
}

}  // namespace pleat::cli
