#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace httplib {
struct Response;
}

namespace pleat {

/// A request that cannot be done, and what the client is told: status, one line, the field that is
/// at fault (empty: none), and further members of the error object.
class RequestError : public Error {
  public:
    RequestError(int status, const std::string& message, std::string param = {},
                 std::string type = {},
                 nlohmann::ordered_json more = nlohmann::ordered_json::object())
        : Error(message),
          message_(message),
          status_(status),
          param_(std::move(param)),
          type_(std::move(type)),
          more_(std::move(more)) {}

    int status() const { return status_; }
    /// {"error": {"code": status, "message", "type", "param", ...}}: OpenAI's form with
    /// llama-server's types; `type` follows from the status unless it was given.
    nlohmann::ordered_json body() const;

  private:
    std::string message_;  ///< what() ends at a NUL, which a client may have sent
    int status_;
    std::string param_;
    std::string type_;
    nlohmann::ordered_json more_;
};

/// Of a request whose client has gone. For the log alone: nothing is sent.
constexpr int client_closed_request = 499;
RequestError client_gone();

/// Makes a response of it; a 503 says Retry-After.
void set_error(httplib::Response& response, const RequestError& error);
void set_error(httplib::Response& response, int status, std::string_view message,
               std::string_view param = {});

}  // namespace pleat
