#include "cli/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include "base/error.h"

namespace pleat::cli {
namespace {

std::string_view without_plus(std::string_view text) {
    return text.starts_with('+') ? text.substr(1) : text;
}

template <typename Number>
bool is_plain(std::string_view text) {
    Number value{};
    const std::string_view digits = without_plus(text);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error != std::errc::invalid_argument && end == digits.data() + digits.size();
}

CLI::Validator plain_number(bool whole) {
    return {[whole](std::string& text) -> std::string {
                if (whole ? is_plain<int64_t>(text) : is_plain<double>(text)) return {};
                return fmt::format("\"{}\" is not a {}", text, whole ? "whole number" : "number");
            },
            ""};
}

void tidy(CLI::Option& option) {
    const std::string type = option.get_type_name();
    const bool whole = type.starts_with("INT") || type.starts_with("UINT");
    if (whole || type.starts_with("FLOAT")) option.check(plain_number(whole));
    if (option.get_items_expected_max() == 1 &&
        option.get_multi_option_policy() == CLI::MultiOptionPolicy::Throw) {
        option.multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
}

}  // namespace

CLI::Validator whole_number(int64_t low, int64_t high) {
    return {[low, high](std::string& text) -> std::string {
                int64_t value = 0;
                const std::string_view digits = without_plus(text);
                const auto [end, error] =
                    std::from_chars(digits.data(), digits.data() + digits.size(), value);
                const bool plain = end == digits.data() + digits.size() && error == std::errc{};
                if (plain && value >= low && value <= high) return {};
                return fmt::format("\"{}\" is not a whole number from {} to {}", text, low, high);
            },
            ""};
}

double parse_ratio(const std::string& text, std::string_view flag) {
    double number = 0.0;
    const char* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, number);
    std::string_view unit(next, static_cast<size_t>(end - next));
    if (unit.starts_with(' ')) unit.remove_prefix(1);
    const bool percent = unit == "%";
    if (error != std::errc{} || !(percent || unit.empty()) || !std::isfinite(number) ||
        number < 0) {
        fail("{} {}: expected a percentage or a ratio of 0 or more, as 60% or 0.6", flag, text);
    }
    return percent ? number / 100.0 : number;
}

std::string decimals(double number) {
    return std::isfinite(number) ? fmt::format("{:.4f}", number) : "n/a";
}

std::string difference_text(double value, double low, double high) {
    const auto shown = [](double number) {
        return std::isfinite(number) ? fmt::format("{:+.4f}", number) : "n/a";
    };
    if (!std::isfinite(low) || !std::isfinite(high)) return shown(value) + " [n/a]";
    return fmt::format("{} [{}, {}]", shown(value), shown(low), shown(high));
}

void tidy_flags(CLI::App& app) {
    for (CLI::App* const command : app.get_subcommands({})) {
        for (CLI::Option* const option : command->get_options()) tidy(*option);
    }
}

void refuse_unknown_flags(const CLI::App& command, const std::vector<std::string>& arguments) {
    for (size_t i = 1; i < arguments.size(); ++i) {
        const std::string& argument = arguments[i];
        if (argument == "--") return;
        const bool dashed = argument.size() > 1 && argument[0] == '-';
        if (!dashed || is_plain<double>(argument)) continue;
        const bool is_long = argument[1] == '-';
        const std::string name = is_long ? argument.substr(0, argument.find('=')) : argument;
        const CLI::Option* option = command.get_option_no_throw(name);
        bool value_attached = name.size() != argument.size();
        if (option == nullptr && !is_long && is_plain<int64_t>(argument.substr(2))) {
            option = command.get_option_no_throw(argument.substr(0, 2));  // -n16
            value_attached = true;
        }
        if (option == nullptr) {
            fail("{} has no flag {}; see pleat {} --help", command.get_name(), name,
                 command.get_name());
        }
        if (option->get_items_expected_max() > 0 && !value_attached) ++i;
    }
}

}  // namespace pleat::cli
