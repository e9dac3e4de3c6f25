#include "serve/metrics.h"

#include <fmt/format.h>

namespace pleat {
namespace {

/// One metric after the other, each with its help and type.
class MetricsText {
  public:
    template <typename Value>
    void add(std::string_view name, std::string_view type, std::string_view help, Value value) {
        begin(name, type, help);
        row("", value);
    }

    void begin(std::string_view name, std::string_view type, std::string_view help) {
        name_ = name;
        text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
    }

    template <typename Value>
    void row(std::string_view labels, Value value) {
        text_ += fmt::format("{}{} {}\n", name_, labels, value);
    }

    std::string take() { return std::move(text_); }

  private:
    std::string_view name_;
    std::string text_;
};

double ratio(double a, double b) { return b > 0.0 ? a / b : 0.0; }

void add_stock(MetricsText& text, const MetricsInput& input) {
    const EngineCounters& c = input.counters;
    text.add("llamacpp:prompt_tokens_total", "counter",
             "Prompt tokens processed, without cached ones", c.prompt_tokens);
    text.add("llamacpp:prompt_tokens_cached_total", "counter",
             "Prompt tokens taken from a server slot's cache", c.cached_tokens);
    text.add("llamacpp:prompt_seconds_total", "counter", "Time spent on prompts", c.prompt_seconds);
    text.add("llamacpp:tokens_predicted_total", "counter", "Tokens generated", c.predicted_tokens);
    text.add("llamacpp:tokens_predicted_seconds_total", "counter", "Time spent on generating",
             c.predicted_seconds);
    text.add("llamacpp:n_decode_total", "counter", "Decode steps", c.decode_steps);
    text.add("llamacpp:n_tokens_max", "counter", "Longest sequence so far, prompt and answer",
             input.n_tokens_max);
    text.add("llamacpp:prompt_tokens_seconds", "gauge", "Prompt tokens per second, on average",
             ratio(static_cast<double>(c.prompt_tokens), c.prompt_seconds));
    text.add("llamacpp:predicted_tokens_seconds", "gauge",
             "Generated tokens per second, on average",
             ratio(static_cast<double>(c.predicted_tokens), c.predicted_seconds));
    text.add("llamacpp:requests_processing", "gauge", "Jobs in a server slot", c.running);
    text.add("llamacpp:requests_deferred", "gauge", "Jobs that wait for a server slot", c.waiting);
    text.add("llamacpp:n_busy_slots_per_decode", "gauge", "Sequences per decode step, on average",
             ratio(static_cast<double>(c.busy_slots_sum), static_cast<double>(c.decode_steps)));
}

void add_jobs(MetricsText& text, const EngineCounters& c) {
    text.begin("pleat:jobs_total", "counter", "Jobs that ended, by how");
    text.row("{result=\"done\"}", c.jobs_done);
    text.row("{result=\"failed\"}", c.jobs_failed);
    text.row("{result=\"cancelled\"}", c.jobs_cancelled);
    text.row("{result=\"refused\"}", c.jobs_refused);
}

void add_variants(MetricsText& text, const MetricsInput& input) {
    text.begin("pleat:variant_info", "gauge", "The plans that are served");
    for (const VariantMetrics& v : input.variants) {
        text.row(fmt::format("{{model=\"{}\",plan=\"{}\",plan_hash=\"{}\"}}", label_text(v.name),
                             label_text(v.plan), v.plan_hash),
                 1);
    }
    text.begin("pleat:cache_bytes", "gauge", "Allocated for K/V and recurrent states");
    for (const VariantMetrics& v : input.variants) {
        text.row(fmt::format("{{model=\"{}\"}}", label_text(v.name)), v.cache_bytes);
    }
    text.begin("pleat:slots", "gauge", "Server slots, by what they do");
    for (size_t i = 0; i < input.variants.size(); ++i) {
        size_t busy = 0;
        size_t idle = 0;
        for (const SlotState& slot : input.slots) {
            if (slot.variant == i) ++(slot.busy ? busy : idle);
        }
        const std::string name = label_text(input.variants[i].name);
        text.row(fmt::format("{{model=\"{}\",state=\"busy\"}}", name), busy);
        text.row(fmt::format("{{model=\"{}\",state=\"idle\"}}", name), idle);
    }
    text.begin("pleat:slot_cached_tokens", "gauge", "Tokens that server slots hold");
    for (const SlotState& slot : input.slots) {
        text.row(fmt::format("{{model=\"{}\",slot=\"{}\"}}",
                             label_text(input.variants.at(slot.variant).name), slot.id),
                 slot.n_cached);
    }
}

}  // namespace

std::string label_text(std::string_view value) {
    std::string text;
    for (const char c : value) {
        if (c == '\n') {
            text += "\\n";
            continue;
        }
        if (c == '\\' || c == '"') text += '\\';
        text += c;
    }
    return text;
}

std::string metrics_text(const MetricsInput& input) {
    MetricsText text;
    add_stock(text, input);
    add_jobs(text, input.counters);
    text.add("pleat:weight_bytes", "gauge", "Weights loaded, shared by all variants",
             input.weight_bytes);
    add_variants(text, input);
    return text.take();
}

}  // namespace pleat
