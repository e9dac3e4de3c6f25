#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "lab/profile.h"
#include "lab/scores.h"
#include "plan_file/fingerprint.h"

namespace pleat {

/// What a journal's results belong to. Results of other headers are other results, so everything
/// that decides a number is in here, and nothing that differs between two runs of one command.
struct JournalHeader {
    std::string command;  ///< "scan", "calibrate", "search"
    Fingerprint model;
    std::vector<Measure> measures;
    std::vector<DataSource> data = {};
    std::vector<std::pair<std::string, std::string>> settings = {};  ///< name, value
};

/// What a result is found by. A rung says how much was measured: "" when there is one, else for
/// example "32 items".
struct JournalKey {
    std::string plan;  ///< canonical text
    std::string rung = {};
    auto operator<=>(const JournalKey&) const = default;
};

/// The scores of a plan, one entry for every measure that was taken.
struct JournalRecord {
    JournalKey key;
    std::vector<std::pair<std::string, ItemScores>> scores;  ///< by the measure's name
    bool operator==(const JournalRecord&) const = default;
};

/// Results on disk as they come: JSON Lines, a header and one record a line, each on the disk
/// before append() returns. A process that is killed at any moment loses the record that it was
/// writing and nothing else; opening the file again goes on from there. One process at a time
/// writes a file.
class Journal {
  public:
    /// Opens the file, or makes it. A last line that was cut off is removed; a broken line before
    /// it, another header, a file that is no journal, and a file that another process has open are
    /// Errors of one line: with the number of the line, or the field and both values.
    static Journal open(const std::string& path, const JournalHeader& header);
    ~Journal();
    Journal(Journal&& other) noexcept;
    Journal& operator=(Journal&& other) noexcept;
    Journal(const Journal&) = delete;
    Journal& operator=(const Journal&) = delete;

    const std::string& path() const { return path_; }
    /// In the order of the file.
    const std::vector<JournalRecord>& records() const { return records_; }
    /// Null when there is no such result yet. Valid until the next append.
    const JournalRecord* find(const JournalKey& key) const;

    /// Throws Error when the key is there already, or the disk refuses.
    void append(const JournalRecord& record);

  private:
    Journal() = default;
    void read(const std::string& expected_header);

    std::string path_;
    int file_ = -1;  ///< locked
    std::vector<JournalRecord> records_;
    std::map<JournalKey, size_t> index_;
};

}  // namespace pleat
