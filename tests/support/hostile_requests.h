#pragma once

#include <random>
#include <string>

namespace pleat::test {

/// A request that no reasonable client sends, as the bytes of it, and how it is to be answered.
struct HostileRequest {
    enum class Answer : uint8_t {
        one,     ///< HTTP in order, whatever the body holds: exactly one response
        any,     ///< HTTP out of order: responses, or none, and then the server closes
        nobody,  ///< the client is gone before an answer can come
    };
    std::string kind;  ///< for messages
    std::string text;
    Answer answer = Answer::one;
};

HostileRequest hostile_request(std::mt19937& random);

}  // namespace pleat::test
