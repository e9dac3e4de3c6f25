#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "serve/engine.h"
#include "serve/generation_request.h"
#include "serve/served_models.h"

namespace pleat {

/// What GET /props tells, beside what the engine knows.
struct PropsInput {
    std::string version = {};
    std::string model_path = {};
    std::string chat_template = {};
    std::string tool_form = {};  ///< ChatFormat::tool_form
    bool slots = true;           ///< the endpoint is there, as the next
    bool metrics = true;
    int32_t n_predict = -1;
    SamplingParams sampling = {};
};

/// llama-server's members, and the variants with their plans.
nlohmann::ordered_json props_json(const PropsInput& input, const Engine& engine,
                                  const ServedModels& models, const Tokenizer& tokenizer);

/// GET /slots: llama-server's members that there are, and the variant's name. What is asked, and
/// the texts of stop strings and grammars, only with `prompts`.
nlohmann::ordered_json slots_json(const std::vector<SlotState>& slots, const ServedModels& models,
                                  const Tokenizer& tokenizer, uint32_t n_ctx, bool prompts);

/// POST /tokenize: {"content"} to {"tokens"}, ids or with `with_pieces` ids and texts; a piece that
/// is no UTF-8 is a list of its bytes. Throws RequestError, also as PromptTokenizer does.
nlohmann::ordered_json tokenize_json(const Fields& fields, const RequestContext& context);
/// POST /detokenize: {"tokens"} to {"content"}.
nlohmann::ordered_json detokenize_json(const Fields& fields, const Tokenizer& tokenizer);

}  // namespace pleat
