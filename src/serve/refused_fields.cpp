#include "serve/refused_fields.h"

#include <fmt/format.h>

#include <array>

namespace pleat {
namespace {

using nlohmann::ordered_json;

struct RefusedRow {
    std::string_view name;
    uint8_t endpoints;  ///< bits by Endpoint
    /// JSON of the value that changes nothing; empty: there is none.
    std::string_view neutral;
    std::string_view instead;  ///< what there is in its place
};

constexpr uint8_t bit(Endpoint endpoint) {
    return static_cast<uint8_t>(1U << static_cast<unsigned>(endpoint));
}
constexpr uint8_t chat = bit(Endpoint::chat);
constexpr uint8_t text = bit(Endpoint::text_completion);
constexpr uint8_t completions = text | bit(Endpoint::completion);
constexpr uint8_t all = completions | chat;

constexpr std::array<RefusedRow, 27> refused_rows{{
    // OpenAI's
    {"echo", text, "false", "the prompt is known to the client"},
    {"suffix", text, "\"\"", ""},
    {"best_of", text, "1", "use n"},
    {"audio", chat, "", ""},
    {"modalities", chat, "[\"text\"]", ""},
    {"web_search_options", chat, "", ""},
    {"functions", chat, "[]", "use tools"},
    {"function_call", chat, "\"none\"", "use tool_choice"},
    {"verbosity", chat, "\"medium\"", ""},
    // llama-server's
    {"lora", all, "[]", ""},
    {"control_vectors", all, "[]", ""},
    {"image_data", all, "[]", ""},
    {"multimodal_data", all, "[]", ""},
    {"n_indent", all, "0", ""},
    {"post_sampling_probs", all, "false", "probabilities are those before the samplers"},
    {"grammar_lazy", all, "false", ""},
    {"grammar_triggers", all, "[]", ""},
    {"preserved_tokens", all, "[]", ""},
    {"penalty_prompt", all, "", ""},
    {"penalize_nl", all, "true", ""},
    {"tfs_z", all, "1", ""},
    {"reasoning_budget", chat, "-1", "chat_template_kwargs may have a way to switch thinking off"},
    {"reasoning_budget_tokens", all, "-1",
     "chat_template_kwargs may have a way to switch thinking off"},
    {"thinking_budget_tokens", chat, "-1",
     "chat_template_kwargs may have a way to switch thinking off"},
    {"reasoning_in_content", all, "false", "reasoning_format none leaves it in the content"},
    {"input_prefix", completions, "\"\"", ""},
    {"input_suffix", completions, "\"\"", ""},
}};

}  // namespace

void check_refused_fields(const Fields& fields, Endpoint endpoint) {
    for (const RefusedRow& row : refused_rows) {
        if ((row.endpoints & bit(endpoint)) == 0) continue;
        const ordered_json* const value = fields.find(row.name);
        if (value == nullptr) continue;
        if (!row.neutral.empty() && *value == ordered_json::parse(row.neutral)) continue;
        refuse_field(
            fields.param(row.name),
            fmt::format("is not offered{}{}{}", row.instead.empty() ? "" : ": ", row.instead,
                        row.neutral.empty()
                            ? std::string("; leave it out")
                            : fmt::format("; leave it out or give {}", row.neutral)));
    }
}

}  // namespace pleat
