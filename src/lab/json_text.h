#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pleat {

/// JSON as it was written: numbers keep their digits, however many, and an object its order.
struct JsonText {
    enum class Type : uint8_t { null, boolean, number, text, array, object };

    Type type = Type::null;
    std::string text{};  ///< of a text, without quotes and escapes, or a number's digits
    std::vector<std::string> keys{};  ///< of an object, one for each value
    std::vector<JsonText> values{};   ///< of an object or array

    /// The value of a key; null when there is none.
    const JsonText* find(std::string_view key) const;
};

/// Parses one value. Throws Error that begins with `where` and names the place, for what is no JSON
/// or no UTF-8, and for great depths and keys that come twice in an object.
JsonText parse_json_text(std::string_view text, const std::string& where);

}  // namespace pleat
