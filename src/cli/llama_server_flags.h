#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace pleat::cli {

/// llama-server's flags that this server does not need or does not have, so that a command line
/// made for it works or says why not.
class LlamaServerFlags {
  public:
    void add(CLI::App& app);
    /// Throws Error for the first flag that asks for what this server does not do. Else a line for
    /// each that changes nothing but the speed there.
    std::vector<std::string> warnings() const;

  private:
    std::vector<std::string> refused_;
    std::vector<std::string> ignored_;
};

/// llama-server's environment variables, for flags that the command has; call it when all are
/// added. A flag on the command line comes before its variable.
void read_llama_environment(CLI::App& app);
/// A line for each LLAMA_ARG_ variable that is set and read by nothing here.
std::vector<std::string> unread_llama_environment();
/// LLAMA_ARG_MODEL; empty: not set.
std::string model_of_environment();

}  // namespace pleat::cli
