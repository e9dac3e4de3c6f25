// Malformed requests by the thousand: PLEAT_FUZZ_REQUESTS and PLEAT_FUZZ_SEED choose how many and
// which; a fault is replayed with PLEAT_FUZZ_REQUESTS=1 and its seed. Under the sanitizers:
//     cmake --preset asan && cmake --build build/asan --target pleat_serve_fuzz_test
//     build/asan/tests/pleat_serve_fuzz_test
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "support/hostile_json.h"
#include "support/hostile_requests.h"
#include "support/server_process.h"

namespace pleat::test {
namespace {

using nlohmann::json;

size_t from_environment(const char* name, size_t otherwise) {
    const char* const text = std::getenv(name);
    return text == nullptr ? otherwise : std::stoul(text);
}

/// What a process holds that it could fail to give back.
struct Held {
    size_t threads = 0;
    size_t files = 0;
};

Held held_by(pid_t process) {
    const std::filesystem::path root = "/proc/" + std::to_string(process);
    const auto count = [](const std::filesystem::path& folder) {
        const std::filesystem::directory_iterator entries(folder);
        return static_cast<size_t>(std::distance(begin(entries), end(entries)));
    };
    return {count(root / "task"), count(root / "fd")};
}

/// One client of the server under test; its connection is kept as long as the server keeps it.
class Client {
  public:
    explicit Client(const ServerProcess& server) : server_(server) {}

    /// The bytes of one response; empty when none came.
    std::string ask(const std::string& text) {
        if (!kept_) kept_ = std::make_unique<RawClient>(server_.connect());
        std::string answer = kept_->send(text).read_answer();
        const std::string head = answer.substr(0, answer.find("\r\n\r\n") + 2);
        if (head.find("Transfer-Encoding: chunked") != std::string::npos) {
            answer += kept_->read_until("0\r\n\r\n");
        }
        if (kept_->timed_out()) answer.insert(0, "incomplete: ");
        if (kept_->closed() || kept_->timed_out() ||
            head.find("Connection: close") != std::string::npos)
            kept_.reset();
        return answer;
    }

  private:
    const ServerProcess& server_;
    std::unique_ptr<RawClient> kept_;
};

/// What is wrong with a response; nothing when it is as it should be.
std::optional<std::string> fault_of(const std::string& text, bool head_only) {
    HttpResponse response;
    try {
        response = read_response(text);
    } catch (const std::exception& e) {
        return e.what();
    }
    const bool known = response.status >= 200 && response.status < 600 && response.status != 500;
    if (!known) return "status " + std::to_string(response.status);
    if (response.status < 400 || head_only) return {};
    if (!json::accept(response.body)) return "an error that is not JSON";
    const json error = json::parse(response.body).value("error", json());
    const bool shaped = error.is_object() && error.contains("message") &&
                        error["message"].is_string() && error.contains("type") &&
                        error["type"].is_string() && error.contains("code");
    if (!shaped) return "an error that is not OpenAI's";
    if (error["message"].get<std::string>().size() > 2000) return "a message of many words";
    if (error["code"].is_number() && error["code"] != response.status) return "two statuses";
    return {};
}

/// The responses on a connection that then closes, one after the other.
std::optional<std::string> fault_of_all(std::string text, bool head_only) {
    while (!text.empty()) {
        if (text.starts_with("HTTP/1.1 100 ")) {
            text.erase(0, text.find("\r\n\r\n") + 4);
            continue;
        }
        size_t end = text.size();
        const size_t head = text.find("\r\n\r\n");
        const size_t length = text.find("Content-Length: ");
        if (head != std::string::npos && length < head && !head_only) {
            end = std::min(end, head + 4 + std::stoul(text.substr(length + 16)));
        } else if (const size_t last = text.find("\r\n0\r\n\r\n"); last != std::string::npos) {
            end = last + 7;
        }
        if (const auto fault = fault_of(text.substr(0, end), head_only)) return fault;
        text.erase(0, end);
    }
    return {};
}

class ServeFuzz : public testing::Test {
  protected:
    std::string usual_answer() {
        return server_
            .post("/completion", {{"prompt", "The cat"}, {"n_predict", 8}, {"temperature", 0}})
            .json()
            .value("content", "");
    }

    bool all_idle() {
        for (const json& slot : server_.get("/slots").json()) {
            if (slot.at("is_processing").get<bool>()) return false;
        }
        return true;
    }

    /// Sends it; a message when the answer is not as it should be.
    std::optional<std::string> fault_of_answer(const HostileRequest& request) {
        if (request.answer == HostileRequest::Answer::nobody) {
            server_.connect().send(request.text).vanish();
            return {};
        }
        const bool head_only = request.text.starts_with("HEAD ");
        if (request.answer == HostileRequest::Answer::one) {
            const std::string answer = client_.ask(request.text);
            ++n_answers_[answer.substr(0, std::string_view("HTTP/1.1 200").size())];
            return fault_of(answer, head_only);
        }
        RawClient client = server_.connect();
        client.send(request.text);
        client.half_close();
        const std::string answers = client.read_all();
        if (client.timed_out()) return "a connection that is not closed";
        return fault_of_all(answers, head_only);
    }

    ServerProcess server_{
        {PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf", "-c", "96", "-np", "2", "-n", "2"}};
    Client client_{server_};
    std::map<std::string, size_t> n_answers_;  ///< by status line
};

TEST_F(ServeFuzz, MalformedRequestsLeaveTheServerAsItWas) {
    const size_t n = from_environment("PLEAT_FUZZ_REQUESTS", 10'000);
    const size_t first = from_environment("PLEAT_FUZZ_SEED", 0);
    const std::string usual = usual_answer();
    ASSERT_FALSE(usual.empty());
    const Held before = held_by(server_.pid());
    for (size_t seed = first; seed < first + n; ++seed) {
        std::mt19937 random(static_cast<uint32_t>(seed));
        const HostileRequest request = hostile_request(random);
        std::optional<std::string> fault;
        ASSERT_NO_THROW(fault = fault_of_answer(request))
            << "seed " << seed << ", " << request.kind;
        EXPECT_FALSE(fault) << "seed " << seed << ", " << request.kind << ": " << *fault << "\n"
                            << request.text.substr(0, 600);
        if (seed % 500 != 0) continue;
        ASSERT_EQ(server_.get("/health").status, 200) << "seed " << seed;
        ASSERT_EQ(usual_answer(), usual) << "seed " << seed;
    }
    for (const auto& [status, count] : n_answers_) std::printf("%s: %zu\n", status.c_str(), count);
    // Neither refused at the door, all of them, nor taken for good.
    EXPECT_GT(n_answers_["HTTP/1.1 200"], n / 20);
    EXPECT_GT(n_answers_["HTTP/1.1 400"], n / 5);
    EXPECT_TRUE(soon([&] { return all_idle(); }));
    EXPECT_EQ(usual_answer(), usual);
    EXPECT_TRUE(soon([&] {
        const Held now = held_by(server_.pid());
        return now.threads <= before.threads + 2 && now.files <= before.files + 2;
    }));
    const ToolRun end = server_.stop();
    EXPECT_EQ(end.status, 0) << end.err;
}

}  // namespace
}  // namespace pleat::test
