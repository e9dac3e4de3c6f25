#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "support/stock_tools.h"
#include "support/temp_file.h"

namespace pleat::test {

/// The built `pleat` as a child process, with its output in files: a pipe that nobody empties would
/// stop it.
class PleatProcess {
  public:
    /// Starts it. Throws Error when it cannot be started.
    explicit PleatProcess(const std::vector<std::string>& arguments, std::string_view input = "");
    ~PleatProcess();  ///< kills it when it still runs
    PleatProcess(const PleatProcess&) = delete;
    PleatProcess& operator=(const PleatProcess&) = delete;

    /// What it has written so far.
    std::string out() const { return read_bytes(out_.path()); }
    std::string err() const { return read_bytes(err_.path()); }
    /// Whether it has ended; wait() still has to be called.
    bool ended() const;
    pid_t pid() const { return child_; }
    void send(int signal) const;
    /// Waits for its end; once.
    ToolRun wait();

  private:
    TempFile in_;
    TempFile out_{".out"};
    TempFile err_{".err"};
    pid_t child_ = -1;
};

/// Runs `pleat` with these arguments to its end.
ToolRun run_pleat(const std::vector<std::string>& arguments, std::string_view input = "");

}  // namespace pleat::test
