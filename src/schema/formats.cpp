#include "schema/formats.h"

#include <fmt/format.h>

#include <map>

namespace pleat {
namespace {

// RFC 3339: days as the month and the year have them, no year 0, no leap seconds.
const std::string date =
    R"((([1-9]\d{3}|0[1-9]\d\d|00[1-9]\d|000[1-9])-((0[13578]|1[02])-(0[1-9]|[12]\d|3[01])|)"
    R"((0[469]|11)-(0[1-9]|[12]\d|30)|02-(0[1-9]|1\d|2[0-8]))|)"
    R"((\d\d(0[48]|[2468][048]|[13579][26])|(0[48]|[2468][048]|[13579][26])00)-02-29))";
const std::string hour = R"(([01]\d|2[0-3]))";
const std::string time_of_day =
    hour + R"(:[0-5]\d:[0-5]\d(\.\d{1,9})?(Z|[+-])" + hour + R"(:[0-5]\d))";

/// RFC 3339, appendix A: units without gaps.
std::string duration() {
    const std::string n = R"(\d{1,9})";
    const std::string minutes = n + "M(" + n + "S)?";
    const std::string time = "T(" + n + "H(" + minutes + ")?|" + minutes + "|" + n + "S)";
    const std::string months = n + "M(" + n + "D)?";
    const std::string date_part = "(" + n + "Y(" + months + ")?|" + months + "|" + n + "D)";
    return "P(" + n + "W|" + date_part + "(" + time + ")?|" + time + ")";
}

// At most 63 characters, as DNS has it, and no more than 255 together.
const std::string label = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const std::string host = label + "(\\." + label + "){0,2}";

std::string ipv4() {
    const std::string byte = R"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
    return byte + "(\\." + byte + "){3}";
}

/// Eight groups, or `::` once in the place of one or more.
std::string ipv6() {
    const std::string group = "[0-9a-fA-F]{1,4}";
    std::string result =
        "((" + group + ":){7}" + group + "|(" + group + ":){1,7}:|:(:" + group + "){1,7}|::";
    for (int before = 1; before <= 6; ++before) {
        result += fmt::format("|({0}:){{{1}}}(:{0}){{1,{2}}}", group, before, 7 - before);
    }
    return result + ")";
}

std::string uri() {
    const std::string c = "[A-Za-z0-9._~!$&'()*+,;=:@-]";
    return "[A-Za-z][A-Za-z0-9+.-]{0,15}://" + host + "(:\\d{1,5})?(/" + c + "*)*(\\?(" + c +
           "|[/?])*)?(#(" + c + "|[/?])*)?";
}

const std::map<std::string, std::string, std::less<>>& patterns() {
    const auto alone = [](const std::string& pattern) { return "^" + pattern + "$"; };
    static const std::map<std::string, std::string, std::less<>> table = {
        {"date", alone(date)},
        {"time", alone(time_of_day)},
        {"date-time", alone(date + "T" + time_of_day)},
        {"duration", alone(duration())},
        {"uuid", alone("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")},
        {"email", alone("[A-Za-z0-9_%+-]{1,20}(\\.[A-Za-z0-9_%+-]{1,20}){0,2}@" + label + "(\\." +
                        label + "){1,2}")},
        {"hostname", alone(host)},
        {"ipv4", alone(ipv4())},
        {"ipv6", alone(ipv6())},
        {"uri", alone(uri())},
    };
    return table;
}

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
    const auto it = patterns().find(format);
    if (it == patterns().end()) return {};
    return it->second;
}

std::string format_names() {
    std::string result;
    for (const auto& [name, pattern] : patterns()) {
        result += (result.empty() ? "" : ", ") + name;
    }
    return result;
}

}  // namespace pleat
