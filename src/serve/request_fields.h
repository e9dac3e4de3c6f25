#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http_error.h"
#include "serve/limits.h"

namespace pleat {

/// The JSON object of a body. Proved before it is parsed: UTF-8, depth, and how many members and
/// values it has, since finding a member takes time that grows with their number. Throws
/// RequestError (400).
nlohmann::ordered_json parse_body(std::string_view body, const RequestLimits& limits);

/// Values of the types that a field may have; `param` names it. All throw RequestError (400) that
/// says what was found and what is valid. A whole number may be written as 3.0.
bool as_boolean(const nlohmann::ordered_json& value, const std::string& param);
int64_t as_integer(const nlohmann::ordered_json& value, const std::string& param, int64_t low,
                   int64_t high);
double as_number(const nlohmann::ordered_json& value, const std::string& param, double low,
                 double high);
const std::string& as_text(const nlohmann::ordered_json& value, const std::string& param);
const nlohmann::ordered_json& as_array(const nlohmann::ordered_json& value,
                                       const std::string& param, size_t max_size);
const nlohmann::ordered_json& as_object(const nlohmann::ordered_json& value,
                                        const std::string& param);

/// Throws RequestError (400): "param: message".
[[noreturn]] void refuse_field(const std::string& param, const std::string& message);

/// What `work` makes of a field; an Error that it throws is the field's fault.
template <typename Work>
auto of_field(const std::string& param, Work work) {
    try {
        return work();
    } catch (const RequestError&) {
        throw;
    } catch (const Error& e) {
        refuse_field(param, e.what());
    }
}

/// The fields of an object by their names; one that is null is not there. The object must outlive
/// this. Readers throw as those above.
class Fields {
  public:
    /// `path` stands before the names in messages: "response_format" gives "response_format.type".
    /// Throws when it is no object.
    explicit Fields(const nlohmann::ordered_json& object, std::string path = {});

    /// Null when it is not there.
    const nlohmann::ordered_json* find(std::string_view name) const;
    bool has(std::string_view name) const { return find(name) != nullptr; }
    /// As messages name it.
    std::string param(std::string_view name) const;

    std::optional<bool> boolean(std::string_view name) const;
    bool boolean(std::string_view name, bool otherwise) const;
    std::optional<int64_t> integer(std::string_view name, int64_t low, int64_t high) const;
    std::optional<double> number(std::string_view name, double low, double high) const;
    std::optional<std::string> text(std::string_view name) const;
    std::optional<std::vector<std::string>> texts(std::string_view name, size_t max_size) const;

    const nlohmann::ordered_json& object() const { return object_; }

  private:
    const nlohmann::ordered_json& object_;
    std::string path_;
};

}  // namespace pleat
