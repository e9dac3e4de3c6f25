#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>
#include <vector>

#include "support/server_process.h"
#include "support/temp_file.h"

// The clients that people use, in their own language, against a real server: tests/clients holds
// what they ask and expect.
namespace pleat::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";
const fs::path sources = PLEAT_CLIENTS_DIR;
const fs::path installed = PLEAT_CLIENTS_BUILD_DIR;

struct Shell {
    int status;
    std::string output;
};

Shell run_shell(const std::string& command) {
    std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return {.status = 127, .output = "no shell"};
    std::string output;
    std::array<char, 4096> bytes;
    while (const size_t n = std::fread(bytes.data(), 1, bytes.size(), pipe)) {
        output.append(bytes.data(), n);
    }
    return {.status = ::pclose(pipe), .output = output};
}

std::string last_line(std::string text) {
    while (text.ends_with('\n')) text.pop_back();
    return text.substr(text.rfind('\n') + 1);
}

bool has_packages() {
    std::ifstream wanted_file(sources / "package.json");
    const auto wanted = nlohmann::json::parse(wanted_file);
    for (const auto& [name, version] : wanted["dependencies"].items()) {
        std::ifstream file(installed / "node_modules" / name / "package.json");
        if (!file || nlohmann::json::parse(file)["version"] != version) return false;
    }
    return true;
}

/// Puts the tests beside the packages that they use, which are fetched once for a build directory.
/// Returns why that cannot be; empty: it is done.
std::string install() {
    if (run_shell("node --version").status != 0) return "there is no node here";
    fs::create_directories(installed);
    for (const auto& entry : fs::directory_iterator(sources)) {
        fs::copy_file(entry.path(), installed / entry.path().filename(),
                      fs::copy_options::overwrite_existing);
    }
    if (has_packages()) return {};
    if (run_shell("npm --version").status != 0) return "there is no npm here";
    const Shell npm =
        run_shell(fmt::format("cd '{}' && npm install --no-audit --no-fund --no-package-lock "
                              "--ignore-scripts --fetch-retries 1 --fetch-timeout 60000",
                              installed.string()));
    if (npm.status == 0) return {};
    return "npm cannot fetch the clients: " + last_line(npm.output);
}

const std::string& why_not() {
    static const std::string reason = install();
    return reason;
}

struct Part {
    std::string name;
    friend void PrintTo(const Part& part, std::ostream* out) { *out << part.name; }
};

class OpenAiForNode : public testing::TestWithParam<Part> {
  protected:
    void SetUp() override {
        if (why_not().empty()) return;
        const char* const required = std::getenv("PLEAT_REQUIRE_CLIENTS");
        if (required != nullptr && *required != '\0') FAIL() << why_not();
        GTEST_SKIP() << why_not();
    }
};

TEST_P(OpenAiForNode, FindsWhatItKnows) {
    const std::string jinja = (sources / "tools.jinja").string();
    const ServerProcess one({model, "-np", "4", "--chat-template-file", jinja});
    const ServerProcess variants(
        {model, "--variant", "base=", "--variant", "deep=4,8", "-np", "4"});
    const TempFile key(".key", "sesame\n");
    const ServerProcess guarded({model, "-np", "1", "--api-key-file", key.path()});
    const Shell node = run_shell(fmt::format(
        "cd '{}' && PLEAT_URL={} PLEAT_VARIANTS_URL={} PLEAT_KEY_URL={} PLEAT_KEY=sesame "
        "node --test --test-reporter=spec {}.test.mjs",
        installed.string(), one.url(), variants.url(), guarded.url(), GetParam().name));
    EXPECT_EQ(node.status, 0) << node.output << "\nthe server's log:\n" << one.log();
}

INSTANTIATE_TEST_SUITE_P(Parts, OpenAiForNode,
                         testing::Values(Part{"chat"}, Part{"completions"}, Part{"tools"},
                                         Part{"errors"}, Part{"variants"}),
                         [](const auto& part) { return part.param.name; });

}  // namespace
}  // namespace pleat::test
