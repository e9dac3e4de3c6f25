#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/sampling_options.h"
#include "generate/generation.h"
#include "text/tokenizer.h"

namespace pleat::cli {

/// How the answers of a chat are generated: flags that can also be set on the way.
class ChatSettings {
  public:
    void add(CLI::App& app);
    /// Throws Error as SamplingOptions and Sampler do.
    GenerationParams params(const Tokenizer& tokenizer) const;

    /// "temp 0.7", by the names of the flags, without dashes. Throws Error, and changes nothing,
    /// when there is no such flag or the value will not do.
    void set(std::string_view text, const Tokenizer& tokenizer);
    /// The settings that have a default, with their values, a line each; then the others' names.
    std::string list() const;

  private:
    void add_length(CLI::App& app);

    SamplingOptions sampling_;
    int32_t n_predict_ = -1;
};

}  // namespace pleat::cli
