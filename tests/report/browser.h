#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/temp_dir.h"

namespace pleat::test {

/// The name of a Chromium on this machine: $PLEAT_CHROMIUM, or what the PATH has.
std::optional<std::string> find_chromium();

/// A headless Chromium with one page, driven over the pipes of its DevTools protocol: no port, no
/// library. Everything that the page logged, threw or asked for is kept.
class Browser {
  public:
    explicit Browser(const std::string& program);
    ~Browser();
    Browser(const Browser&) = delete;
    Browser& operator=(const Browser&) = delete;

    /// Opens a file and waits until it has loaded.
    void open(const std::string& path);
    /// The value of an expression, as JSON. Throws std::runtime_error when it throws.
    nlohmann::json evaluate(const std::string& expression);
    void set_dark(bool dark);
    void screenshot(const std::string& path, int width, int height);

    const std::vector<std::string>& complaints() const { return complaints_; }
    const std::vector<std::string>& requests() const { return requests_; }

  private:
    nlohmann::json call(const std::string& method, nlohmann::json parameters = {});
    nlohmann::json receive();
    void note(const nlohmann::json& event);

    TempDir profile_;
    pid_t child_ = -1;
    int to_ = -1;
    int from_ = -1;
    int next_id_ = 1;
    std::string session_;
    std::string buffer_;
    bool loaded_ = false;
    std::vector<std::string> complaints_;
    std::vector<std::string> requests_;
};

}  // namespace pleat::test
