#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

namespace pleat::test {

/// The built `pleat` at a terminal of its own, as a person uses it.
class PleatTerminal {
  public:
    /// Starts it. Throws Error when it cannot be started.
    explicit PleatTerminal(const std::vector<std::string>& arguments);
    ~PleatTerminal();  ///< kills it when it still runs
    PleatTerminal(const PleatTerminal&) = delete;
    PleatTerminal& operator=(const PleatTerminal&) = delete;

    void type(std::string_view keys) const;
    /// Until the program reads keys one by one; before that the terminal itself would act on them.
    void wait_for_editor() const;
    /// Reads what appears until `text` has; returns all since the last call, `text` included.
    /// Throws Error, with what did appear, when the program ends or a minute passes first.
    std::string wait_for(std::string_view text);
    /// All that appears until the program ends.
    std::string rest();
    /// Waits for its end; once. 128 + the signal that ended it.
    int wait();
    pid_t pid() const { return child_; }

  private:
    bool read_more();

    int terminal_ = -1;
    pid_t child_ = -1;
    std::string seen_;  ///< since the last call of wait_for
};

inline constexpr std::string_view ctrl_c = "\x03";
inline constexpr std::string_view ctrl_d = "\x04";
inline constexpr std::string_view up = "\x1b[A";
inline constexpr std::string_view left = "\x1b[D";

}  // namespace pleat::test
