#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pleat::cli {

/// The files that a command is going to write, looked at before the work begins, so that no result
/// goes over anything but an older result of its kind.
class ResultFiles {
  public:
    /// `inputs`: what the command reads.
    explicit ResultFiles(std::vector<std::string> inputs) : inputs_(std::move(inputs)) {}

    /// Throws Error unless the result of `flag` can be written to `path` (empty: none is): it must
    /// not be an input or another result, by whatever name or link, its folder must take files, and
    /// a file that is there must be empty or hold `mark` in its first bytes (an empty mark: whoever
    /// opens it looks himself).
    void add(const std::string& path, std::string_view flag, std::string_view mark);

  private:
    struct Result {
        std::string path;
        std::string flag;
    };
    std::vector<std::string> inputs_;
    std::vector<Result> results_;
};

// What the first bytes of results hold.
inline constexpr std::string_view profile_mark = "\"pleat_profile\"";
inline constexpr std::string_view report_mark = "\"pleat_report\"";
inline constexpr std::string_view report_page_mark = "default-src 'none'";

}  // namespace pleat::cli
