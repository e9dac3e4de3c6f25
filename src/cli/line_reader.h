#pragma once

#include <memory>
#include <optional>
#include <string>

namespace pleat::cli {

struct LineEvent {
    enum class Kind { line, interrupted, end };
    Kind kind = Kind::line;
    std::string text = {};  ///< of a line, without its newline; else what was discarded
};

/// Lines of the standard input: edited, with recall of earlier ones, where a person sits at a
/// terminal; else as they come. One at a time.
class LineReader {
  public:
    LineReader();
    ~LineReader();
    LineReader(const LineReader&) = delete;
    LineReader& operator=(const LineReader&) = delete;

    /// The next line. `prompt` is shown on terminals only. Ctrl-C discards the line under way.
    LineEvent read(const std::string& prompt);
    bool interactive() const { return editor_ != nullptr; }

  private:
    struct Editor;
    std::unique_ptr<Editor> editor_;  ///< null: plain lines
};

}  // namespace pleat::cli
