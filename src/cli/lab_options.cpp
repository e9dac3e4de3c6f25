#include "cli/lab_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <filesystem>

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

}  // namespace

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
}

Workload ScoringOptions::workload(const Tokenizer& tokenizer) const {
    if (texts_.empty() && probes_.empty()) {
        fail("nothing to score on: name a text with --text or a probe file with --probes");
    }
    Workload workload;
    for (const std::string& path : texts_) {
        std::string text = read_text_file(path, "the text");
        // Stock's tools leave out one newline at the end of a file.
        if (text.ends_with('\n')) text.pop_back();
        workload.add_text(name_of(path), tokenizer.tokenize(text, true, false), n_ctx_,
                          tokenizer.add_bos() ? tokenizer.bos() : -1, max_chunks_);
    }
    for (const std::string& path : probes_) {
        workload.add_probes(read_probe_file(path), tokenizer);
    }
    return workload;
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
      shows_(!quiet && ::isatty(STDERR_FILENO) != 0),
      start_(seconds_now()) {}

ProgressLine::~ProgressLine() {
    if (shown_) fmt::print(stderr, "\r{:78}\r", "");
}

void ProgressLine::show(double fraction) {
    if (!shows_) return;
    const double now = seconds_now();
    if (now - last_ < 0.2 || now - start_ < 0.5) return;
    last_ = now;
    shown_ = true;
    const double left = fraction > 0.0 ? (now - start_) * (1.0 - fraction) / fraction : 0.0;
    const auto whole = static_cast<int64_t>(left);
    fmt::print(stderr, "\r{:<30} {:5.1f} %  {}:{:02}:{:02} left ", title_, fraction * 100.0,
               whole / 3600, whole / 60 % 60, whole % 60);
    std::fflush(stderr);
}

}  // namespace pleat::cli
