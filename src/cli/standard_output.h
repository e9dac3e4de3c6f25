#pragma once

#include <string_view>

namespace pleat::cli {

/// Text that appears while it is made, so every piece is flushed. A reader that went away ends the
/// command without a word, as it would end by SIGPIPE; what else goes wrong is an error.
class StandardOutput {
  public:
    void write(std::string_view text);
    bool failed() const { return error_ != 0; }
    /// Throws what ends the command when something could not be written.
    void check() const;

  private:
    int error_ = 0;
};

}  // namespace pleat::cli
