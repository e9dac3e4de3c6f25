#include "cli/result_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/error.h"
#include "support/temp_dir.h"

namespace pleat::cli {
namespace {

using testing::HasSubstr;

std::string refusal(ResultFiles files, const std::string& path, std::string_view mark = "") {
    try {
        files.add(path, "--profile", mark);
    } catch (const Error& e) {
        return e.what();
    }
    return "";
}

TEST(ResultFiles, MayBeNewOrEmptyOrOfTheirKind) {
    TempDir dir;
    EXPECT_EQ(refusal(ResultFiles({}), ""), "");
    EXPECT_EQ(refusal(ResultFiles({}), dir.file("new.json"), profile_mark), "");
    EXPECT_EQ(refusal(ResultFiles({}), dir.file_with("empty.json", ""), profile_mark), "");
    const std::string old = dir.file_with("old.json", "{\n  \"pleat_profile\": 1}");
    EXPECT_EQ(refusal(ResultFiles({}), old, profile_mark), "");
}

TEST(ResultFiles, DoNotGoOverSomethingElse) {
    TempDir dir;
    const std::string notes = dir.file_with("notes.txt", "my notes");
    EXPECT_THAT(refusal(ResultFiles({}), notes, profile_mark), HasSubstr("holds something else"));
    const std::string journal = dir.file_with("j.jsonl", "{\"pleat_journal\": 1}");
    EXPECT_THAT(refusal(ResultFiles({}), journal, profile_mark), HasSubstr("holds something else"));
}

TEST(ResultFiles, AreNoInputsByWhateverName) {
    TempDir dir;
    const std::string model = dir.file_with("model.gguf", "GGUF");
    std::filesystem::create_symlink(model, dir.file("link"));
    std::filesystem::create_hard_link(model, dir.file("hard"));
    for (const char* const name : {"model.gguf", "link", "hard", "./model.gguf"}) {
        EXPECT_THAT(refusal(ResultFiles({model}), dir.file(name)), HasSubstr("which is read"));
    }
}

TEST(ResultFiles, AreDifferentFilesByWhateverName) {
    TempDir dir;
    ResultFiles files({});
    files.add(dir.file("out"), "-o", "");
    EXPECT_THAT(refusal(files, dir.file("out")), HasSubstr("is where -o goes"));
    EXPECT_THAT(refusal(files, dir.file("./out")), HasSubstr("is where -o goes"));
    std::filesystem::create_symlink(dir.file("out"), dir.file("link"));  // to no file yet
    EXPECT_THAT(refusal(files, dir.file("link")), HasSubstr("is where -o goes"));
    EXPECT_EQ(refusal(files, dir.file("other")), "");
}

TEST(ResultFiles, NeedAFolderAndARegularFile) {
    TempDir dir;
    EXPECT_THAT(refusal(ResultFiles({}), dir.file("no/such")), HasSubstr("there is no folder"));
    EXPECT_THAT(refusal(ResultFiles({}), "/dev/null"), HasSubstr("is no regular file"));
}

}  // namespace
}  // namespace pleat::cli
