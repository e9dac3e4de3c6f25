// Templates of our own against Python's jinja2. scripts/template_expectations.py writes
// tests/data/templates/expected.json anew.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/error.h"
#include "jinja/template.h"

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

const std::string data = PLEAT_SOURCE_DIR "/tests/data/templates";

std::string read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    EXPECT_TRUE(in) << path;
    return text.str();
}

Json read_json(const std::string& name) { return Json::parse(read(data + "/" + name)); }

/// In the form of the expectations.
Json rendered(const std::string& text, const Json& variables) {
    try {
        return {{"text", jinja::Template(text).render(variables)}};
    } catch (const Error&) {
        return {{"error", true}};
    }
}

const Json& expectations() {
    static const Json expected = read_json("expected.json");
    return expected;
}

TEST(Templates, MeanWhatTheyMeanInPython) {
    const Json constructs = read_json("constructs.json");
    const Json expected = expectations()["constructs"];
    ASSERT_EQ(constructs["cases"].size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        const std::string text = constructs["cases"][i]["template"];
        EXPECT_EQ(rendered(text, constructs["variables"]), expected[i]) << text;
    }
}

TEST(Templates, OfWholeConversationsDoSo) {
    const Json conversations = read_json("conversations.json");
    for (const auto& [name, shown] : expectations()["templates"].items()) {
        const std::string text = read(data + "/" + name);
        for (const auto& [conversation, given] : conversations.items()) {
            Json variables{{"tools", nullptr},
                           {"documents", nullptr},
                           {"add_generation_prompt", true},
                           {"bos_token", "<s>"},
                           {"eos_token", "</s>"}};
            variables.update(given);
            EXPECT_EQ(rendered(text, variables), shown[conversation])
                << name << ", " << conversation;
        }
    }
}

/// What a command prints.
std::string output_of(const std::string& command) {
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string output;
    std::array<char, 4096> buffer{};
    while (const size_t n = fread(buffer.data(), 1, buffer.size(), pipe.get())) {
        output.append(buffer.data(), n);
    }
    return output;
}

TEST(Templates, AreExpectedToRenderWhatPythonRendersToday) {
    const std::string version =
        output_of("python3 -c 'import jinja2; print(jinja2.__version__)' 2>&1");
    if (!version.starts_with("3.")) {
        GTEST_SKIP() << "no python3 with jinja2 3 here, only the committed expectations were used: "
                     << version;
    }
    const std::string live = output_of(
        "python3 '" PLEAT_SOURCE_DIR "/scripts/template_expectations.py' '" + data + "' --print");
    EXPECT_EQ(live, read(data + "/expected.json"))
        << "scripts/template_expectations.py tests/data/templates writes it anew";
}

}  // namespace
}  // namespace pleat
