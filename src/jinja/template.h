#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace pleat::jinja {

/// A Jinja template as Hugging Face runs them for chats: minja's values, scopes and statements
/// under an own parser, with what expressions mean in Python (docs/chat-templates.md has the
/// supported part). Text is treated as a stranger's program: size, nesting, recursion, work and
/// output are bounded. Both functions recurse: give them a deep stack. Immutable.
class Template {
  public:
    /// Throws Error, with line and character, for what is not supported.
    explicit Template(std::string source);
    ~Template();
    Template(Template&&) noexcept;
    Template& operator=(Template&&) noexcept;

    /// Filters and tests that do not exist, each with its line: what reaches them cannot be
    /// rendered.
    const std::vector<std::string>& missing() const;

    /// Throws Error, one line, when the template raises one or does not end.
    std::string render(const nlohmann::ordered_json& variables) const;

  private:
    struct Program;
    std::unique_ptr<const Program> program_;
};

}  // namespace pleat::jinja
