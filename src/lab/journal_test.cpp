#include "lab/journal.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <limits>
#include <random>
#include <thread>

#include "base/error.h"
#include "support/temp_file.h"

namespace pleat {
namespace {

using test::TempFile;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

JournalHeader header() {
    return {.command = "scan",
            .model = {.architecture = "llama", .n_layer = 16, .n_embd = 64, .name = "tiny"},
            .measures = {{.name = "nll"}, {.name = "probe:logic", .higher_is_better = true}},
            .data = {{.name = "text.txt", .sha256 = std::string(64, 'a'), .n_items = 3}},
            .settings = {{"n_ctx", "512"}}};
}

JournalRecord record(int i, const std::string& rung = "") {
    return {.key = {.plan = fmt::format("0..{},0..15", i), .rung = rung},
            .scores = {{"nll", {.sum = {1.0 / 3 + i, 0.1}, .weight = {256, 255}}},
                       {"accuracy", {.sum = {1, 0}, .weight = {1, 1}}}}};
}

std::string error_of(const std::string& path, const JournalHeader& with = header()) {
    try {
        Journal::open(path, with);
    } catch (const Error& error) {
        return error.what();
    }
    return "no error";
}

TEST(Journal, GivesBackWhatWasAppended) {
    const TempFile file(".jsonl");
    JournalRecord odd = record(7, "32 items");
    odd.scores[0].second.sum = {std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()};
    {
        Journal journal = Journal::open(file.path(), header());
        EXPECT_TRUE(journal.records().empty());
        journal.append(record(1));
        journal.append(odd);
        EXPECT_EQ(*journal.find(odd.key), odd);
    }
    const Journal again = Journal::open(file.path(), header());
    EXPECT_THAT(again.records(), ElementsAre(record(1), odd));
    EXPECT_EQ(*again.find(record(1).key), record(1));
    EXPECT_EQ(again.find(record(1, "32 items").key), nullptr);
}

TEST(Journal, KeepsNotANumber) {
    const TempFile file(".jsonl");
    JournalRecord broken = record(1);
    broken.scores[0].second.sum[1] = std::nan("");
    Journal::open(file.path(), header()).append(broken);
    const Journal again = Journal::open(file.path(), header());
    EXPECT_TRUE(std::isnan(again.records()[0].scores[0].second.sum[1]));
}

TEST(Journal, TakesNoResultTwice) {
    const TempFile file(".jsonl");
    Journal journal = Journal::open(file.path(), header());
    journal.append(record(1));
    try {
        journal.append(record(1));
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.what(), file.path() + ": the result of 0..1,0..15 is there already");
    }
    EXPECT_EQ(journal.records().size(), 1U);
}

TEST(Journal, IsCutAtATornLastLineWhereverItWasTorn) {
    const TempFile file(".jsonl");
    {
        Journal journal = Journal::open(file.path(), header());
        journal.append(record(1));
        journal.append(record(2));
    }
    const std::string whole = read_bytes(file.path());
    for (size_t size = 0; size < whole.size(); size += 1 + size / 11) {
        SCOPED_TRACE(size);
        const TempFile torn(".jsonl", whole.substr(0, size));
        Journal journal = Journal::open(torn.path(), header());
        for (int i = 1; i <= 2; ++i) {
            if (journal.find(record(i).key) == nullptr) journal.append(record(i));
        }
        EXPECT_EQ(read_bytes(torn.path()), whole);
    }
}

TEST(Journal, NamesALineThatIsBrokenInTheMiddle) {
    const TempFile file(".jsonl");
    {
        Journal journal = Journal::open(file.path(), header());
        journal.append(record(1));
    }
    const std::string whole = read_bytes(file.path());
    const auto with = [&](const std::string& line) {
        const TempFile broken(".jsonl", whole + line + "\n" + "{\"plan\"");
        const std::string before = read_bytes(broken.path());
        std::string message = error_of(broken.path());
        EXPECT_EQ(read_bytes(broken.path()), before) << "an error must not change the file";
        EXPECT_THAT(message, StartsWith(broken.path() + ": line 3 is broken"));
        return message.substr(broken.path().size());
    };
    const std::string tail = "; take it out to have its plan scored again";
    EXPECT_EQ(with(R"({"plan": "0..3", "sc)"), ": line 3 is broken" + tail);
    EXPECT_EQ(with(""), ": line 3 is broken" + tail);
    EXPECT_EQ(with("[]"), ": line 3 is broken" + tail);
    EXPECT_EQ(with(R"({"plan": 3, "scores": {}})"), ": line 3 is broken" + tail);
    EXPECT_EQ(with(R"({"plan": "0", "scores": {"nll": {"sum": [1], "weight": []}}})"),
              ": line 3 is broken: as many sums as weights are needed" + tail);
    EXPECT_EQ(with(R"({"plan": "0", "scores": {"nll": {"sum": ["x"], "weight": [1]}}})"),
              ": line 3 is broken: x is no number" + tail);
    EXPECT_EQ(with(R"({"plan": "0..1,0..15", "scores": {}})"),
              ": line 3 is broken: the result of 0..1,0..15 is there twice" + tail);
}

TEST(Journal, RefusesResultsOfAnotherRunByField) {
    const TempFile file(".jsonl");
    Journal::open(file.path(), header()).append(record(1));
    const auto message = [&](const std::function<void(JournalHeader&)>& change) {
        JournalHeader other = header();
        change(other);
        return error_of(file.path(), other).substr(file.path().size());
    };
    EXPECT_EQ(message([](JournalHeader& it) { it.settings[0].second = "1024"; }),
              ": its results were made with settings.n_ctx = 512, this run has "
              "1024; name another file");
    EXPECT_EQ(message([](JournalHeader& it) { it.model.n_embd = 128; }),
              ": its results were made with model.n_embd = 64, this run has 128; name another "
              "file");
    EXPECT_EQ(message([](JournalHeader& it) { it.settings.emplace_back("seed", "1"); }),
              ": its results were made with settings.seed = nothing, this run has 1; name "
              "another file");
    EXPECT_THAT(message([](JournalHeader& it) { it.measures.pop_back(); }),
                HasSubstr("measures.1."));
    EXPECT_THAT(message([](JournalHeader& it) { it.data[0].sha256[0] = 'b'; }),
                HasSubstr("data.0.sha256"));
    EXPECT_EQ(error_of(file.path(),
                       [] {
                           JournalHeader renamed = header();
                           renamed.model.name = "tiny too";
                           return renamed;
                       }()),
              "no error");
}

TEST(Journal, LeavesFilesOfOthersAlone) {
    for (const std::string contents : {"notes without a newline", "some\nnotes\n", "{}\n"}) {
        const TempFile file(".txt", contents);
        EXPECT_EQ(error_of(file.path()),
                  file.path() + ": not a journal of Pleat; name another file");
        EXPECT_EQ(read_bytes(file.path()), contents);
    }
    EXPECT_EQ(error_of("/nowhere/scan.jsonl"),
              "/nowhere/scan.jsonl: cannot open: No such file or directory");
}

TEST(Journal, HasOneWriter) {
    const TempFile file(".jsonl");
    Journal journal = Journal::open(file.path(), header());
    const std::string message =
        file.path() + ": another process is writing it; wait for it or name another file";
    EXPECT_EQ(error_of(file.path()), message);
    journal.append(record(2));
    journal.append(record(1));
    const Journal moved = std::move(journal);
    EXPECT_EQ(error_of(file.path()), message);
}

/// What a scan does: score what is missing, in an order of its own. It kills itself after `n_lives`
/// records.
void scan(const std::string& path, int n, uint32_t n_lives = UINT32_MAX) {
    Journal journal = Journal::open(path, header());
    for (int i = 0; i < n; ++i) {
        if (journal.find(record(i).key) != nullptr) continue;
        if (n_lives-- == 0) ::raise(SIGKILL);
        journal.append(record(i));
    }
}

TEST(Journal, OfAScanKilledAtRandomMomentsIsThatOfOneThatWasNot) {
    constexpr int n = 60;
    const TempFile whole(".jsonl");
    scan(whole.path(), n);
    std::mt19937 random(1);
    int n_killed = 0;
    for (int round = 0; round < 4; ++round) {
        const TempFile file(".jsonl");
        for (int life = 1;; ++life) {
            const auto n_lives = static_cast<uint32_t>(1 + random() % 24);
            const pid_t child = ::fork();
            ASSERT_GE(child, 0);
            if (child == 0) {
                try {
                    scan(file.path(), n, n_lives);
                } catch (const std::exception&) {
                    ::_exit(2);
                }
                ::_exit(0);
            }
            std::this_thread::sleep_for(std::chrono::microseconds(500 + random() % 30'000));
            ::kill(child, SIGKILL);
            int status = 0;
            ASSERT_EQ(::waitpid(child, &status, 0), child);
            if (WIFSIGNALED(status)) {
                ++n_killed;
                ASSERT_LT(life, 5'000) << "no progress";
                continue;
            }
            ASSERT_EQ(WEXITSTATUS(status), 0);
            break;
        }
        EXPECT_EQ(read_bytes(file.path()), read_bytes(whole.path()));
    }
    EXPECT_GE(n_killed, 8);  // 60 records in lives of at most 24, four times
}

}  // namespace
}  // namespace pleat
