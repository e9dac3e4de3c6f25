#pragma once

#include <gtest/gtest.h>

#include <string>

#include "serve/http_error.h"

namespace pleat::test {

/// What a client is told.
struct Refusal {
    int status = 0;
    std::string param = {};
    std::string message = {};
};

/// Of the RequestError that `work` throws; fails the test when it throws none.
template <typename Work>
Refusal refusal_of(Work work) {
    try {
        work();
    } catch (const RequestError& e) {
        const nlohmann::ordered_json error = e.body().at("error");
        const nlohmann::ordered_json& param = error.at("param");
        return {.status = e.status(),
                .param = param.is_null() ? std::string() : param.get<std::string>(),
                .message = e.what()};
    }
    ADD_FAILURE() << "throws no RequestError";
    return {};
}

inline nlohmann::ordered_json json(const std::string& text) {
    return nlohmann::ordered_json::parse(text);
}

}  // namespace pleat::test
