#include "lab/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "lab/json.h"
#include "plan/message.h"

namespace pleat {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int journal_schema = 1;

// A broken plan may well have an infinite loss, which is a result like others; JSON has no word
// for it.
ordered_json number_json(double number) {
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    return number;
}

double number_of(const json& value) {
    if (value.is_number()) return value.get<double>();
    const auto& text = value.get_ref<const std::string&>();
    if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
    if (text == "inf") return std::numeric_limits<double>::infinity();
    if (text == "-inf") return -std::numeric_limits<double>::infinity();
    fail("{} is no number", escaped(text));
}

ordered_json numbers_json(const std::vector<double>& numbers) {
    ordered_json list = ordered_json::array();
    for (const double number : numbers) list.push_back(number_json(number));
    return list;
}

std::vector<double> numbers_of(const json& list) {
    std::vector<double> numbers;
    for (const json& value : list) numbers.push_back(number_of(value));
    return numbers;
}

std::string header_line(const JournalHeader& header) {
    ordered_json measures = ordered_json::array();
    for (const Measure& it : header.measures) {
        measures.push_back({{"name", it.name}, {"higher_is_better", it.higher_is_better}});
    }
    ordered_json data = ordered_json::array();
    for (const DataSource& it : header.data) data.push_back(data_source_json(it));
    ordered_json settings = ordered_json::object();
    for (const auto& [name, value] : header.settings) settings[name] = value;
    return dump_json({{"pleat_journal", journal_schema},
                      {"command", header.command},
                      {"model", fingerprint_json(header.model)},
                      {"measures", std::move(measures)},
                      {"data", std::move(data)},
                      {"settings", std::move(settings)}}) +
           "\n";
}

std::string record_line(const JournalRecord& record) {
    ordered_json scores = ordered_json::object();
    for (const auto& [measure, items] : record.scores) {
        scores[measure] = {{"sum", numbers_json(items.sum)},
                           {"weight", numbers_json(items.weight)}};
    }
    ordered_json line = {{"plan", record.key.plan}};
    if (!record.key.rung.empty()) line["rung"] = record.key.rung;
    line["scores"] = std::move(scores);
    return dump_json(line) + "\n";
}

JournalRecord record_of(std::string_view line) {
    // Ordered, so that measures stay as they were written.
    const ordered_json object = ordered_json::parse(line);
    JournalRecord record{.key = {.plan = object.at("plan").get<std::string>()}, .scores = {}};
    if (object.contains("rung")) record.key.rung = object.at("rung").get<std::string>();
    for (const auto& [measure, items] : object.at("scores").items()) {
        record.scores.emplace_back(measure,
                                   ItemScores{.sum = numbers_of(json(items.at("sum"))),
                                              .weight = numbers_of(json(items.at("weight")))});
        const ItemScores& scores = record.scores.back().second;
        if (scores.sum.size() != scores.weight.size()) fail("as many sums as weights are needed");
    }
    return record;
}

/// "/settings/n_ctx" as a person writes it.
std::string field_name(std::string pointer) {
    pointer.erase(0, 1);
    std::ranges::replace(pointer, '/', '.');
    return escaped(pointer);
}

/// The first field in which the headers say different things. A model may be renamed: its name is
/// for people.
void check_header(const json& found, const json& expected, const std::string& path) {
    const json a = found.flatten();
    const json b = expected.flatten();
    std::set<std::string> fields;
    for (const json& side : {a, b}) {
        for (const auto& [field, value] : side.items()) fields.insert(field);
    }
    fields.erase("/model/name");
    const auto shown = [](const json& side, const std::string& field) {
        const auto it = side.find(field);
        if (it == side.end()) return std::string("nothing");
        return escaped(it->is_string() ? it->get<std::string>() : it->dump());
    };
    for (const std::string& field : fields) {
        const std::string has = shown(a, field);
        const std::string wanted = shown(b, field);
        if (has == wanted) continue;
        fail("{}: its results were made with {} = {}, this run has {}; name another file", path,
             field_name(field), has, wanted);
    }
}

[[noreturn]] void fail_errno(const std::string& path, const char* what) {
    fail("{}: {}: {}", path, what, std::strerror(errno));
}

void write_all(int file, std::string_view bytes, const std::string& path) {
    while (!bytes.empty()) {
        const ssize_t n = ::write(file, bytes.data(), bytes.size());
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno(path, "cannot write");
        bytes.remove_prefix(static_cast<size_t>(n));
    }
    if (::fsync(file) != 0) fail_errno(path, "cannot write");
}

std::string read_all(int file, const std::string& path) {
    std::string bytes;
    std::array<char, 65536> buffer{};
    while (true) {
        const ssize_t n =
            ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(bytes.size()));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_errno(path, "cannot read");
        if (n == 0) return bytes;
        bytes.append(buffer.data(), static_cast<size_t>(n));
    }
}

/// A new name is on the disk only when its directory is.
void sync_directory(const std::string& path) {
    std::string directory = std::filesystem::path(path).parent_path().string();
    if (directory.empty()) directory = ".";
    const int fd = ::open(directory.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    ::fsync(fd);  // not every file system can; the file itself was synced
    ::close(fd);
}

/// Opens the file, made if need be, and locks it.
int open_locked(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0) fail_errno(path, "cannot open");
    struct stat opened {};
    if (::fstat(file, &opened) != 0 || !S_ISREG(opened.st_mode)) {
        ::close(file);
        fail("{}: not a regular file", path);
    }
    if (::flock(file, LOCK_EX | LOCK_NB) == 0) return file;
    const int error = errno;
    ::close(file);
    if (error != EWOULDBLOCK) fail("{}: cannot lock: {}", path, std::strerror(error));
    fail("{}: another process is writing it; wait for it or name another file", path);
}

}  // namespace

Journal Journal::open(const std::string& path, const JournalHeader& header) {
    Journal journal;
    journal.path_ = path;
    journal.file_ = open_locked(path);
    journal.read(pleat::header_line(header));
    return journal;
}

Journal::~Journal() {
    if (file_ >= 0) ::close(file_);
}

Journal::Journal(Journal&& other) noexcept
    : path_(std::move(other.path_)),
      file_(std::exchange(other.file_, -1)),
      records_(std::move(other.records_)),
      index_(std::move(other.index_)) {}

Journal& Journal::operator=(Journal&& other) noexcept {
    path_ = std::move(other.path_);
    std::swap(file_, other.file_);
    records_ = std::move(other.records_);
    index_ = std::move(other.index_);
    return *this;
}

void Journal::read(const std::string& expected_header) {
    const std::string bytes = read_all(file_, path_);
    const size_t end = bytes.rfind('\n') + 1;  // of the last whole line; npos + 1 is 0
    // Cutting off what somebody else wrote would destroy it, so a file without a whole line must
    // be the beginning of what we would write.
    if (end == 0 && !expected_header.starts_with(bytes)) {
        fail("{}: not a journal of Pleat; name another file", path_);
    }
    std::string_view rest = std::string_view(bytes).substr(0, end);
    for (size_t line_number = 1; !rest.empty(); ++line_number) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(line.size() + 1);
        if (line_number == 1) {
            const json found = json::parse(line, nullptr, false);
            if (!found.is_object() || !found.contains("pleat_journal")) {
                fail("{}: not a journal of Pleat; name another file", path_);
            }
            check_header(found, json::parse(expected_header), path_);
            continue;
        }
        try {
            JournalRecord record = record_of(line);
            if (!index_.emplace(record.key, records_.size()).second) {
                fail("the result of {} is there twice", escaped(record.key.plan));
            }
            records_.push_back(std::move(record));
        } catch (const json::exception&) {
            fail("{}: line {} is broken; take it out to have its plan scored again", path_,
                 line_number);
        } catch (const Error& error) {
            fail("{}: line {} is broken: {}; take it out to have its plan scored again", path_,
                 line_number, error.what());
        }
    }
    if (end < bytes.size() && ::ftruncate(file_, static_cast<off_t>(end)) != 0) {
        fail_errno(path_, "cannot cut off the last line");
    }
    if (end > 0) return;
    write_all(file_, expected_header, path_);
    sync_directory(path_);
}

const JournalRecord* Journal::find(const JournalKey& key) const {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &records_[found->second];
}

void Journal::append(const JournalRecord& record) {
    if (index_.contains(record.key)) {
        fail("{}: the result of {} is there already", path_, escaped(record.key.plan));
    }
    struct stat before {};
    if (::fstat(file_, &before) != 0) fail_errno(path_, "cannot write");
    try {
        write_all(file_, record_line(record), path_);
    } catch (const Error&) {
        // Half a line would be glued to the next record; if this fails too, opening cuts it off.
        if (::ftruncate(file_, before.st_size) != 0) ::close(std::exchange(file_, -1));
        throw;
    }
    index_.emplace(record.key, records_.size());
    records_.push_back(record);
}

}  // namespace pleat
