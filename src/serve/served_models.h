#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "serve/engine.h"
#include "serve/request_fields.h"

namespace pleat {

/// The plans that are served and the names that clients know them by.
class ServedModels {
  public:
    /// `names` by variant. One alone answers to any name; of several, each only to its own.
    explicit ServedModels(std::vector<std::string> names);

    const std::vector<std::string>& names() const { return names_; }
    const std::string& name(size_t variant) const { return names_.at(variant); }

    /// The variant that the field "model" asks for; the first when it is not there. Throws
    /// RequestError: 404 that lists the names, 400 when it is no text.
    size_t find(const Fields& fields) const;
    /// The same of a name; throws the 404.
    size_t find(std::string_view name) const;

  private:
    std::vector<std::string> names_;
};

/// The file's name in a path, without ".gguf".
std::string model_name_of_path(std::string_view path);

/// What GET /v1/models says of one variant: OpenAI's members, llama-server's "meta", and the plan:
/// its canonical text, its hash, what it costs.
nlohmann::ordered_json model_json(const std::string& name, const Context& context, uint32_t n_ctx,
                                  int64_t created);
/// The whole answer. `models` is llama-server's second form of the list.
nlohmann::ordered_json model_list_json(const Engine& engine, const ServedModels& models,
                                       int64_t created);

/// What a variant costs under the names of `pleat plan --json`.
nlohmann::ordered_json plan_cost_json(const Context& context);

}  // namespace pleat
