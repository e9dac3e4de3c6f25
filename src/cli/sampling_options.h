#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "text/sampling_params.h"

namespace pleat::cli {

/// How tokens are drawn, under llama.cpp's names and defaults.
class SamplingOptions {
  public:
    void add(CLI::App& app);
    /// Reads the grammar file, if one was named. Throws Error for what cannot be parsed; ranges are
    /// check_sampling_params' affair.
    SamplingParams params() const;

  private:
    void add_penalties(CLI::App& app);
    void add_grammar(CLI::App& app);

    SamplingParams params_;
    int64_t seed_ = -1;
    std::string samplers_;
    std::string sequence_;
    std::string grammar_file_;
    std::vector<std::string> logit_bias_;
    std::vector<std::string> dry_breakers_;
};

}  // namespace pleat::cli
