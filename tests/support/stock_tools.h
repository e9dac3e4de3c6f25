#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pleat::test {

/// What a program left behind.
struct ToolRun {
    int status = 0;  ///< exit status; 128 + the signal's number when a signal ended it
    std::string out;
    std::string err;
};

/// Is this one of stock's programs here? Tests that need one skip themselves otherwise.
bool have_stock_tool(std::string_view name);

/// Runs a program of stock's release ("llama-bench") through scripts/stock.sh, with an empty
/// standard input, and waits for it. Those that log what they find (llama-perplexity,
/// llama-completion) may end without its last lines; the functions below see to that. Throws Error
/// when it cannot be started.
ToolRun run_stock_tool(const std::string& name, const std::vector<std::string>& arguments);

/// Like run_stock_tool, but a status other than 0 throws Error with the command and what it said.
ToolRun require_stock_tool(const std::string& name, const std::vector<std::string>& arguments);

/// The perplexity that llama-perplexity finds for a text, with chunks of n_ctx tokens, to its four
/// decimals.
double stock_perplexity(const std::string& model, const std::string& text_file, int n_ctx);

/// The text that llama-completion writes after a raw prompt, always the likeliest token, exactly
/// n_predict of them (end-of-generation tokens are forbidden, as its --ignore-eos does).
std::string stock_completion(const std::string& model, const std::string& prompt, int n_predict);

}  // namespace pleat::test
