#include "cli/chat_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace pleat::cli {
namespace {

using Kind = ChatInput::Kind;

/// Gives lines, then the end; "^C" interrupts.
class Lines {
  public:
    Lines(std::initializer_list<const char*> lines) : lines_(lines.begin(), lines.end()) {}

    ChatInput next() {
        return read_chat_input([this](const std::string& prompt) -> LineEvent {
            prompts.push_back(prompt);
            if (next_ == lines_.size()) return {.kind = LineEvent::Kind::end};
            const std::string& line = lines_[next_++];
            if (line.ends_with("^C")) {
                return {.kind = LineEvent::Kind::interrupted,
                        .text = line.substr(0, line.size() - 2)};
            }
            return {.text = line};
        });
    }
    std::string text() {
        const ChatInput input = next();
        EXPECT_EQ(input.kind, Kind::text);
        return input.text;
    }
    std::vector<std::string> prompts;

  private:
    std::vector<std::string> lines_;
    size_t next_ = 0;
};

TEST(ChatInput, IsALineEach) {
    Lines lines{"Hello", "", "/plan 4,8", " /plan is a command"};
    EXPECT_EQ(lines.text(), "Hello");
    EXPECT_EQ(lines.text(), "");
    const ChatInput command = lines.next();
    EXPECT_EQ(command.kind, Kind::command);
    EXPECT_EQ(command.text, "/plan 4,8");
    EXPECT_EQ(lines.text(), " /plan is a command");
    EXPECT_EQ(lines.next().kind, Kind::end);
}

TEST(ChatInput, GoesOnAfterABackslash) {
    Lines lines{"one\\", "two\\", "three", "end\\"};
    EXPECT_EQ(lines.text(), "one\ntwo\nthree");
    EXPECT_THAT(lines.prompts, testing::ElementsAre("> ", ". ", ". "));
    EXPECT_EQ(lines.text(), "end\n") << "the end of the input ends the text, too";
}

TEST(ChatInput, TakesWhatStandsBetweenTripleQuotesAsItIs) {
    Lines lines{R"(""")",    "/help",       "",          R"(a \)", R"(""")", R"("""one line""")",
                R"("""two)", R"(lines""")", R"("""""")", R"(""")", "",       "x",
                R"(""")"};
    EXPECT_EQ(lines.text(), "/help\n\na \\");
    EXPECT_EQ(lines.text(), "one line");
    EXPECT_EQ(lines.text(), "two\nlines");
    EXPECT_EQ(lines.text(), "");
    EXPECT_EQ(lines.text(), "\nx");
}

TEST(ChatInput, RefusesAnEndInsideTripleQuotes) {
    Lines lines{R"(""")", "text"};
    EXPECT_THROW(lines.next(), Error);
}

TEST(ChatInput, AnInterruptDiscardsAllOfIt) {
    Lines lines{"one\\", "^C", R"(""")", "two", "^C", "^C", "three"};
    EXPECT_EQ(lines.next().kind, Kind::interrupted);
    EXPECT_EQ(lines.next().kind, Kind::interrupted);
    EXPECT_EQ(lines.next().kind, Kind::interrupted);
    EXPECT_EQ(lines.text(), "three");
}

TEST(ChatInput, AnInterruptSaysWhetherItDiscardsAnything) {
    Lines lines{"abc^C", "^C", R"(""")", "^C", "one\\", "^C", "^C"};
    for (const bool discarded : {true, false, true, true, false}) {
        const ChatInput input = lines.next();
        EXPECT_EQ(input.kind, Kind::interrupted);
        EXPECT_EQ(input.discarded, discarded);
    }
}

}  // namespace
}  // namespace pleat::cli
