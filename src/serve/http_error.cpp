#include "serve/http_error.h"

#include <httplib.h>

namespace pleat {
namespace {

std::string_view type_of_status(int status) {
    switch (status) {
        case 401:
            return "authentication_error";
        case 403:
            return "permission_error";
        case 404:
            return "not_found_error";
        case 501:
            return "not_supported_error";
        case 503:
            return "unavailable_error";
        default:
            return status >= 500 ? "server_error" : "invalid_request_error";
    }
}

}  // namespace

nlohmann::ordered_json RequestError::body() const {
    nlohmann::ordered_json error = {
        {"code", status_},
        {"message", message_},
        {"type", type_.empty() ? std::string(type_of_status(status_)) : type_},
        {"param", param_.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(param_)}};
    error.update(more_);
    return {{"error", std::move(error)}};
}

RequestError client_gone() { return {client_closed_request, "the client went away"}; }

void set_error(httplib::Response& response, const RequestError& error) {
    response.status = error.status();
    if (error.status() == 503) response.set_header("Retry-After", "1");
    // What a client sent may be part of the message, and need not be UTF-8.
    response.set_content(
        error.body().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace),
        "application/json; charset=utf-8");
}

void set_error(httplib::Response& response, int status, std::string_view message,
               std::string_view param) {
    set_error(response, RequestError(status, std::string(message), std::string(param)));
}

}  // namespace pleat
