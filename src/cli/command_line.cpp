#include "cli/command_line.h"

namespace pleat::cli {

std::vector<std::string> command_line(const CLI::App& command) {
    std::vector<std::string> words{"pleat", command.get_name()};
    std::vector<std::string> flags;
    for (const CLI::Option* const option : command.get_options()) {
        if (option->count() == 0) continue;
        if (option->get_positional() && option->get_lnames().empty()) {
            for (const std::string& value : option->results()) words.push_back(value);
        } else if (option->get_items_expected_max() == 0) {
            flags.push_back(option->get_name());
        } else {
            for (const std::string& value : option->results()) {
                flags.push_back(option->get_name());
                flags.push_back(value);
            }
        }
    }
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
}

}  // namespace pleat::cli
