#include "report/browser.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace pleat::test {
namespace {

using nlohmann::json;

constexpr int timeout_ms = 60'000;

std::string decode_base64(const std::string& text) {
    const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string bytes;
    unsigned bits = 0;
    unsigned n_bits = 0;
    for (const char c : text) {
        const size_t value = digits.find(c);
        if (value == std::string::npos) break;
        bits = (bits << 6U | static_cast<unsigned>(value)) & 0xFFFFU;
        n_bits += 6;
        if (n_bits < 8) continue;
        n_bits -= 8;
        bytes += static_cast<char>(bits >> n_bits & 0xFFU);
    }
    return bytes;
}

}  // namespace

std::optional<std::string> find_chromium() {
    if (const char* const named = std::getenv("PLEAT_CHROMIUM"); named != nullptr) return named;
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        for (const char* const name : {"chromium", "chromium-headless-shell", "chromium-browser",
                                       "google-chrome", "google-chrome-stable"}) {
            const std::string program = folder + "/" + name;
            if (::access(program.c_str(), X_OK) == 0) return program;
        }
    }
    return std::nullopt;
}

Browser::Browser(const std::string& program) {
    ::signal(SIGPIPE, SIG_IGN);  // a browser that died is an error of a write
    std::array<int, 2> commands{};
    std::array<int, 2> answers{};
    if (::pipe(commands.data()) != 0 || ::pipe(answers.data()) != 0) {
        throw std::runtime_error("no pipe");
    }
    const std::string profile = "--user-data-dir=" + profile_.path();
    child_ = ::fork();
    if (child_ < 0) throw std::runtime_error("cannot fork");
    if (child_ == 0) {
        // It reads commands from descriptor 3 and answers on 4; first out of their way.
        const int in = ::fcntl(commands[0], F_DUPFD, 10);
        const int out = ::fcntl(answers[1], F_DUPFD, 10);
        ::dup2(in, 3);
        ::dup2(out, 4);
        const int null = ::open("/dev/null", O_RDWR);
        for (const int stream : {0, 1, 2}) ::dup2(null, stream);
        for (int fd = 5; fd < 64; ++fd) ::close(fd);
        ::setpgid(0, 0);
        ::execl(program.c_str(), program.c_str(), "--headless", "--no-sandbox", "--disable-gpu",
                "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
                "--remote-debugging-pipe", profile.c_str(), "about:blank", nullptr);
        ::_exit(127);
    }
    ::close(commands[0]);
    ::close(answers[1]);
    to_ = commands[1];
    from_ = answers[0];
    const json target = call("Target.createTarget", {{"url", "about:blank"}});
    const json attached =
        call("Target.attachToTarget", {{"targetId", target.at("targetId")}, {"flatten", true}});
    session_ = attached.at("sessionId").get<std::string>();
    for (const char* const domain : {"Page", "Runtime", "Log", "Network"}) {
        call(std::string(domain) + ".enable");
    }
}

Browser::~Browser() {
    ::close(to_);
    ::close(from_);
    ::kill(-child_, SIGKILL);
    ::kill(child_, SIGKILL);
    ::waitpid(child_, nullptr, 0);
}

json Browser::receive() {
    while (true) {
        const size_t end = buffer_.find('\0');
        if (end != std::string::npos) {
            json message = json::parse(buffer_.substr(0, end));
            buffer_.erase(0, end + 1);
            return message;
        }
        struct pollfd ready {
            from_, POLLIN, 0
        };
        if (::poll(&ready, 1, timeout_ms) <= 0) throw std::runtime_error("the browser is silent");
        std::array<char, 65536> bytes{};
        const ssize_t n = ::read(from_, bytes.data(), bytes.size());
        if (n <= 0) throw std::runtime_error("the browser has ended");
        buffer_.append(bytes.data(), static_cast<size_t>(n));
    }
}

void Browser::note(const json& event) {
    const std::string method = event.value("method", "");
    const json parameters = event.value("params", json::object());
    if (method == "Page.loadEventFired") loaded_ = true;
    if (method == "Network.requestWillBeSent") {
        requests_.push_back(parameters.at("request").at("url").get<std::string>());
    }
    if (method == "Runtime.exceptionThrown" || method == "Log.entryAdded" ||
        method == "Runtime.consoleAPICalled") {
        complaints_.push_back(parameters.dump());
    }
}

json Browser::call(const std::string& method, json parameters) {
    const int id = next_id_++;
    json message = {{"id", id}, {"method", method}};
    message["params"] = parameters.is_null() ? json::object() : std::move(parameters);
    if (!session_.empty()) message["sessionId"] = session_;
    const std::string text = message.dump() + '\0';
    for (size_t sent = 0; sent < text.size();) {
        const ssize_t n = ::write(to_, text.data() + sent, text.size() - sent);
        if (n <= 0) throw std::runtime_error("the browser has ended");
        sent += static_cast<size_t>(n);
    }
    while (true) {
        const json answer = receive();
        if (answer.value("id", 0) != id) {
            note(answer);
            continue;
        }
        if (answer.contains("error")) {
            throw std::runtime_error(method + ": " + answer["error"].dump());
        }
        return answer.value("result", json::object());
    }
}

void Browser::open(const std::string& path) {
    loaded_ = false;
    call("Page.navigate", {{"url", "file://" + path}});
    while (!loaded_) note(receive());
}

json Browser::evaluate(const std::string& expression) {
    const json answer =
        call("Runtime.evaluate",
             {{"expression", expression}, {"returnByValue", true}, {"awaitPromise", true}});
    if (answer.contains("exceptionDetails")) {
        throw std::runtime_error(expression + ": " + answer["exceptionDetails"].dump());
    }
    return answer.at("result").value("value", json());
}

void Browser::set_dark(bool dark) {
    call("Emulation.setEmulatedMedia",
         {{"features",
           json::array({{{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}}})}});
}

void Browser::screenshot(const std::string& path, int width, int height) {
    call("Emulation.setDeviceMetricsOverride",
         {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}});
    const json shot = call("Page.captureScreenshot", {{"format", "png"}});
    std::ofstream(path, std::ios::binary) << decode_base64(shot.at("data").get<std::string>());
}

}  // namespace pleat::test
