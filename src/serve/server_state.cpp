#include "serve/server_state.h"

#include <limits>

#include "text/utf8_stream.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

std::string token_text(const Tokenizer& tokenizer, int32_t token) {
    return token == Tokenizer::no_token ? std::string() : to_utf8(tokenizer.piece(token, true));
}

ordered_json piece_json(const std::string& piece) {
    if (is_utf8(piece)) return piece;
    ordered_json bytes = ordered_json::array();
    for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
    return bytes;
}

/// What a job is like; its texts only with `prompts`.
void add_job(ordered_json& entry, const JobRequest& job, const Tokenizer& tokenizer, bool prompts) {
    ordered_json params = generation_settings_json(job.generation, job.n_probs, false);
    if (prompts) {
        entry["prompt"] = to_utf8(tokenizer.detokenize(job.prompt, true));
    } else {
        for (const char* const text : {"stop", "grammar", "dry_sequence_breakers", "logit_bias"}) {
            params.erase(text);
        }
    }
    entry["params"] = std::move(params);
}

/// Tokens that may still come; -1: as many as the context holds.
int64_t n_remaining(const SlotState& slot) {
    const int32_t n_predict = slot.job ? slot.job->request().generation.n_predict : -1;
    return n_predict < 0 ? -1 : int64_t{n_predict} - static_cast<int64_t>(slot.n_decoded);
}

}  // namespace

ordered_json props_json(const PropsInput& input, const Engine& engine, const ServedModels& models,
                        const Tokenizer& tokenizer) {
    GenerationParams defaults{.sampling = input.sampling, .n_predict = input.n_predict};
    ordered_json variants = ordered_json::array();
    for (size_t i = 0; i < engine.n_variants(); ++i) {
        const LayerPlan& plan = engine.context(i).plan();
        variants.push_back(
            {{"name", models.name(i)}, {"plan", plan.canonical()}, {"plan_hash", plan.hash()}});
    }
    const Model& model = engine.context(0).model();
    ordered_json meta = model_json(models.name(0), engine.context(0), engine.n_ctx(), 0)["meta"];
    return {{"default_generation_settings",
             {{"params", generation_settings_json(defaults, 0, false)}, {"n_ctx", engine.n_ctx()}}},
            {"total_slots", engine.slots().size()},
            {"model_alias", models.name(0)},
            {"model_ftype", meta["ftype"]},
            {"model_path", to_utf8(input.model_path)},
            {"modalities", {{"vision", false}, {"audio", false}}},
            {"endpoint_slots", input.slots},
            {"endpoint_props", false},
            {"endpoint_metrics", input.metrics},
            {"chat_template", to_utf8(input.chat_template)},
            {"tool_form", input.tool_form},
            {"bos_token", token_text(tokenizer, tokenizer.bos())},
            {"eos_token", token_text(tokenizer, tokenizer.eos())},
            {"build_info", "pleat-" + input.version},
            {"is_sleeping", false},
            {"n_layer", model.hparams().n_layer},
            {"pooling", pooling_name(engine.pooling())},
            {"variants", std::move(variants)}};
}

ordered_json slots_json(const std::vector<SlotState>& slots, const ServedModels& models,
                        const Tokenizer& tokenizer, uint32_t n_ctx, bool prompts) {
    ordered_json list = ordered_json::array();
    for (const SlotState& slot : slots) {
        ordered_json entry = {{"id", slot.id},
                              {"model", models.name(slot.variant)},
                              {"n_ctx", n_ctx},
                              {"speculative", false},
                              {"is_processing", slot.busy},
                              {"n_prompt_tokens", slot.n_prompt},
                              {"n_prompt_tokens_processed", slot.n_prompt_done},
                              {"n_prompt_tokens_cache", slot.n_cached}};
        if (slot.job) add_job(entry, slot.job->request(), tokenizer, prompts);
        ordered_json next = {{"has_next_token", slot.busy && !slot.prompt},
                             {"n_remain", n_remaining(slot)},
                             {"n_decoded", slot.n_decoded}};
        entry["next_token"] = ordered_json::array({std::move(next)});
        list.push_back(std::move(entry));
    }
    return list;
}

ordered_json tokenize_json(const Fields& fields, const RequestContext& context) {
    // llama-server answers nothing with nothing.
    const std::string content = fields.text("content").value_or("");
    const bool special = fields.boolean("parse_special", true);
    const bool around = fields.boolean("add_special", false);
    if (content.size() > context.limits.tokenize_bytes) {
        refuse_field(
            fields.param("content"),
            fmt::format("has {} bytes, at most {}", content.size(), context.limits.tokenize_bytes));
    }
    const std::vector<int32_t> tokens = of_field(fields.param("content"), [&] {
        return context.prompts.tokenize(content, around, special, context.gone);
    });
    const bool pieces = fields.boolean("with_pieces", false);
    ordered_json list = ordered_json::array();
    for (const int32_t token : tokens) {
        if (pieces) {
            list.push_back(
                {{"id", token}, {"piece", piece_json(context.tokenizer.piece(token, true))}});
        } else {
            list.push_back(token);
        }
    }
    return {{"tokens", std::move(list)}};
}

ordered_json detokenize_json(const Fields& fields, const Tokenizer& tokenizer) {
    std::vector<int32_t> tokens;
    if (const ordered_json* const list = fields.find("tokens")) {
        const std::string param = fields.param("tokens");
        for (const ordered_json& element : as_array(*list, param, SIZE_MAX)) {
            tokens.push_back(
                static_cast<int32_t>(as_integer(element, param, 0, tokenizer.n_vocab() - 1)));
        }
    }
    return {{"content", to_utf8(tokenizer.detokenize(tokens, true))}};
}

}  // namespace pleat
