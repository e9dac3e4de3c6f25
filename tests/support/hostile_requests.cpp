#include "support/hostile_requests.h"

#include <utility>
#include <vector>

#include "support/hostile_json.h"

namespace pleat::test {
namespace {

using Answer = HostileRequest::Answer;
using Random = std::mt19937;

const std::string& one_of(Random& random, const std::vector<std::string>& list) {
    return list[below(random, list.size())];
}

/// An object whose values are JSON texts, or should be.
using Body = std::vector<std::pair<std::string, std::string>>;

std::string text_of(const Body& body) {
    std::string text = "{";
    for (const auto& [name, value] : body) {
        if (text.size() > 1) text += ',';
        text += '"' + name + "\":" + value;
    }
    return text + '}';
}

void set(Body& body, const std::string& name, std::string value) {
    for (auto& [known, old] : body) {
        if (known == name) {
            old = std::move(value);
            return;
        }
    }
    body.emplace_back(name, std::move(value));
}

struct Endpoint {
    std::string path;
    Body body;
    std::vector<std::string> fields;
};

const std::vector<Endpoint>& endpoints() {
    static const std::vector<std::string> generation = {"n_predict",
                                                        "max_tokens",
                                                        "max_completion_tokens",
                                                        "temperature",
                                                        "top_k",
                                                        "top_p",
                                                        "min_p",
                                                        "typical_p",
                                                        "xtc_probability",
                                                        "xtc_threshold",
                                                        "dynatemp_range",
                                                        "dynatemp_exponent",
                                                        "repeat_last_n",
                                                        "repeat_penalty",
                                                        "presence_penalty",
                                                        "frequency_penalty",
                                                        "dry_multiplier",
                                                        "dry_base",
                                                        "dry_allowed_length",
                                                        "dry_penalty_last_n",
                                                        "dry_sequence_breakers",
                                                        "mirostat",
                                                        "mirostat_tau",
                                                        "mirostat_eta",
                                                        "seed",
                                                        "n",
                                                        "stop",
                                                        "stream",
                                                        "stream_options",
                                                        "logit_bias",
                                                        "logprobs",
                                                        "top_logprobs",
                                                        "n_probs",
                                                        "cache_prompt",
                                                        "id_slot",
                                                        "ignore_eos",
                                                        "samplers",
                                                        "min_keep",
                                                        "top_n_sigma",
                                                        "t_max_predict_ms",
                                                        "model",
                                                        "response_fields",
                                                        "timings_per_token",
                                                        "return_tokens",
                                                        "best_of",
                                                        "echo",
                                                        "suffix",
                                                        "user",
                                                        "post_sampling_probs",
                                                        "n_keep",
                                                        "n_indent",
                                                        "lora",
                                                        "grammar_lazy",
                                                        "grammar_triggers",
                                                        "preserved_tokens"};
    static const std::vector<Endpoint> list = [] {
        std::vector<std::string> completion = generation;
        completion.emplace_back("prompt");
        std::vector<std::string> chat = generation;
        for (const char* more :
             {"messages", "tools", "tool_choice", "parallel_tool_calls", "chat_template_kwargs",
              "reasoning_format", "add_generation_prompt", "response_format"})
            chat.emplace_back(more);
        return std::vector<Endpoint>{
            {"/completion", {{"prompt", "\"The cat\""}, {"n_predict", "2"}}, completion},
            {"/v1/completions", {{"prompt", "\"The cat\""}, {"max_tokens", "2"}}, completion},
            {"/v1/chat/completions",
             {{"messages", R"([{"role":"user","content":"hi"}])"}, {"max_tokens", "2"}},
             chat},
            {"/v1/embeddings",
             {{"input", "\"The cat\""}},
             {"input", "model", "encoding_format", "dimensions", "user"}},
            {"/embeddings", {{"input", "\"The cat\""}}, {"input", "content", "embd_normalize"}},
            {"/tokenize",
             {{"content", "\"The cat\""}},
             {"content", "add_special", "with_pieces", "parse_special"}},
            {"/detokenize", {{"tokens", "[1,2,3]"}}, {"tokens"}},
            {"/apply-template",
             {{"messages", R"([{"role":"user","content":"hi"}])"}},
             {"messages", "tools", "chat_template_kwargs", "add_generation_prompt"}},
        };
    }();
    return list;
}

std::string with_body(const std::string& path, const std::string& body,
                      const std::string& headers = "") {
    return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" +
           headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// One to three fields with values they should not have.
HostileRequest wrong_fields(Random& random) {
    const Endpoint& endpoint = endpoints()[below(random, endpoints().size())];
    Body body = endpoint.body;
    std::string kind = "fields of " + endpoint.path + ":";
    for (size_t n = 1 + below(random, 3); n > 0; --n) {
        const std::string& field = one_of(random, endpoint.fields);
        set(body, field, hostile_value(random));
        kind += ' ' + field;
    }
    return {kind, with_body(endpoint.path, text_of(body))};
}

HostileRequest wrong_constraint(Random& random) {
    const bool chat = chance(random, 0.5);
    const Endpoint& endpoint = endpoints()[chat ? 2 : 0];
    Body body = endpoint.body;
    if (chance(random, 0.5)) set(body, "stream", "true");
    switch (below(random, chat ? 7 : 4)) {
        case 0:
            set(body, "grammar", hostile_grammar(random));
            break;
        case 1:
            set(body, "json_schema", hostile_schema(random));
            break;
        case 2:
            set(body, "response_format",
                R"({"type":"json_schema","json_schema":{"name":"x","schema":)" +
                    hostile_schema(random) + "}}");
            break;
        case 3:
            set(body, "response_format", hostile_value(random));
            break;
        case 4:
            set(body, "messages", hostile_messages(random));
            break;
        case 5:
            set(body, "chat_template_kwargs", hostile_template_arguments(random));
            break;
        default:
            set(body, "tools", hostile_tools(random));
            set(body, "tool_choice", chance(random, 0.5) ? "\"required\"" : hostile_value(random));
            break;
    }
    return {"constraint", with_body(endpoint.path, text_of(body))};
}

HostileRequest broken_body(Random& random) {
    const Endpoint& endpoint = endpoints()[below(random, endpoints().size())];
    std::string body = text_of(endpoint.body);
    switch (below(random, 6)) {
        case 0:
            body = hostile_value(random);
            break;
        case 1:
            body.resize(below(random, body.size()));
            break;
        case 2:
            body += hostile_value(random);
            break;
        case 3:
            body.clear();
            for (size_t n = below(random, 200); n > 0; --n)
                body += static_cast<char>(below(random, 256));
            break;
        default:
            damage(random, body);
            break;
    }
    return {"body of " + endpoint.path, with_body(endpoint.path, body)};
}

HostileRequest odd_path(Random& random) {
    static const std::vector<std::string> paths = {"/../../etc/passwd",
                                                   "/%2e%2e/%2e%2e/etc/passwd",
                                                   "/..%2f..%2fetc%2fpasswd",
                                                   "//v1/models",
                                                   "/v1//models",
                                                   "/v1/models/",
                                                   "/v1/models/%00",
                                                   "/v1/models/x/../y",
                                                   "/%",
                                                   "/%zz",
                                                   "/%ff%fe",
                                                   "/?a=b&a=c",
                                                   "/health?x=%00",
                                                   "/health#x",
                                                   "/HEALTH",
                                                   "/health/../health",
                                                   "/\\..\\x",
                                                   "/v1/models?%",
                                                   "/props?",
                                                   "/slots?fail_on_no_slot=1",
                                                   "/slots/999",
                                                   "/slots/0?action=erase",
                                                   "/metrics?x",
                                                   "/.env",
                                                   "/index.html",
                                                   "/favicon.ico",
                                                   "/lora-adapters",
                                                   "/infill",
                                                   "/rerank",
                                                   "*",
                                                   "health",
                                                   "http://localhost/health",
                                                   "http://evil.example/health"};
    static const std::vector<std::string> methods = {
        "GET",   "GET",   "GET",     "HEAD", "PUT",  "DELETE", "OPTIONS",
        "PATCH", "TRACE", "CONNECT", "get",  "BREW", "PRI"};
    std::string path = one_of(random, paths);
    if (chance(random, 0.1)) path = '/' + std::string(below(random, 10'000), 'a');
    if (chance(random, 0.1)) path += std::string(below(random, 100), '/');
    const std::string& method = one_of(random, methods);
    // What is no path, or no method of a server's, may be answered by a closed connection.
    const bool plain = method == "GET" && path.front() == '/' && path.size() < 4000;
    return {method + " " + path.substr(0, 60),
            method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n" +
                (plain ? "" : "Connection: close\r\n") + "\r\n",
            plain ? Answer::one : Answer::any};
}

HostileRequest odd_headers(Random& random) {
    static const std::vector<std::string> headers = {
        "Content-Length: 5\r\nContent-Length: 7\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Content-Length: 0x10\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 1e3\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding : chunked\r\n",
        "transfer-encoding:\tCHUNKED\r\n",
        "Expect: 100-continue\r\nContent-Length: 5\r\n",
        "Expect: nothing\r\n",
        "Host: evil.example\r\n",
        "Host: localhost\r\nHost: evil.example\r\n",
        "Host:\r\n",
        "Host: [::1\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Content-Type: text/plain\r\nContent-Length: 2\r\n",
        "Content-Type: application/x-www-form-urlencoded\r\n",
        "Content-Type: multipart/form-data; boundary=\r\nContent-Length: 4\r\n",
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 8\r\n",
        "Content-Encoding: gzip\r\nContent-Length: 3\r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Basic ////\r\n",
        "Range: bytes=0-\r\n",
        "Range: bytes=-9999999999999999999\r\n",
        "Upgrade: websocket\r\nConnection: Upgrade\r\n",
        "Upgrade: h2c\r\n",
        "Connection: keep-alive, close, x\r\n",
        "Accept: */*;q=9\r\n",
        "Accept-Encoding: gzip;q=-1, br\r\n",
        "no colon\r\n",
        ": no name\r\n",
        " folded: x\r\n",
        "X: a\r\n b\r\n",
        "X\x01: y\r\n",
        "X: \x01\x02\r\n",
        "X: \xFF\r\n",
        "X: y\n",
        "\r",
        "X-Forwarded-For: 1.2.3.4\r\n",
        "Cookie: a=b; c\r\n",
        "Keep-Alive: timeout=-1\r\n"};
    std::string text =
        one_of(random,
               {"GET /health", "POST /completion", "POST /v1/chat/completions", "GET /v1/models"}) +
        one_of(random, {" HTTP/1.1", " HTTP/1.1", " HTTP/1.0", " HTTP/0.9", " HTTP/2.0",
                        " HTTP/9.9", " http/1.1", "", " ", " HTTP/1.1 x"}) +
        "\r\n";
    if (chance(random, 0.9)) text += "Host: localhost\r\n";
    text += "Connection: close\r\n";
    for (size_t n = 1 + below(random, 3); n > 0; --n) text += one_of(random, headers);
    if (chance(random, 0.05)) text += "X: " + std::string(below(random, 100'000), 'y') + "\r\n";
    if (chance(random, 0.05)) {
        for (size_t n = below(random, 3000); n > 0; --n)
            text += "X" + std::to_string(n) + ": y\r\n";
    }
    text += "\r\n";
    text += one_of(random, {"", "{}", "5\r\n{\"a\":\r\n0\r\n\r\n", "FFFFFFFFFFFFFFFF\r\nx",
                            "-1\r\nx\r\n", "zz\r\n", "2;x=y\r\n{}\r\n0\r\nTrailer: x\r\n\r\n",
                            "0\r\n\r\n", "5\r\nab", "--x\r\n\r\n--x--",
                            "00000000000000000000000000000002\r\n{}\r\n0\r\n\r\n", "\x1F\x8B\x08"});
    return {"headers", text, Answer::any};
}

HostileRequest noise(Random& random) {
    std::string text;
    switch (below(random, 4)) {
        case 0:
            for (size_t n = below(random, 300); n > 0; --n)
                text += static_cast<char>(below(random, 256));
            break;
        case 1:
            text = one_of(random, {"\r\n\r\n", "\n\n\n", "GET", "GET /", "GET / HTTP/1.1",
                                   "\x16\x03\x01\x02\x00\x01", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                   "SSH-2.0-x\r\n", std::string("\0\0\0\0", 4)});
            break;
        default:
            text = with_body("/completion", R"({"prompt":"The","n_predict":1})",
                             "Connection: close\r\n");
            damage(random, text);
            break;
    }
    return {"noise", text, Answer::any};
}

/// Several at a time, the last of which closes.
HostileRequest pipelined(Random& random) {
    std::string text;
    for (size_t n = 1 + below(random, 5); n > 0; --n) {
        HostileRequest one = chance(random, 0.5) ? broken_body(random) : wrong_fields(random);
        text += one.text;
    }
    return {"pipelined",
            text + "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
            Answer::any};
}

HostileRequest gone(Random& random) {
    HostileRequest request;
    switch (below(random, 3)) {
        case 0:
            request.text =
                with_body("/completion",
                          R"({"prompt":"The cat","n_predict":50,"stream":true,"ignore_eos":true})");
            break;
        case 1:
            request.text =
                with_body("/v1/chat/completions",
                          R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":50,"n":3})");
            break;
        default:
            request = wrong_fields(random);
            break;
    }
    if (chance(random, 0.5)) request.text.resize(below(random, request.text.size()));
    return {"gone", request.text, Answer::nobody};
}

}  // namespace

HostileRequest hostile_request(Random& random) {
    const size_t kind = below(random, 100);
    if (kind < 30) return wrong_fields(random);
    if (kind < 50) return wrong_constraint(random);
    if (kind < 70) return broken_body(random);
    if (kind < 78) return odd_path(random);
    if (kind < 88) return odd_headers(random);
    if (kind < 93) return noise(random);
    if (kind < 97) return pipelined(random);
    return gone(random);
}

}  // namespace pleat::test
