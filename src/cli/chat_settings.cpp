#include "cli/chat_settings.h"

#include <fmt/format.h>

#include <vector>

#include "base/error.h"
#include "cli/numbers.h"
#include "text/sampler.h"

namespace pleat::cli {
namespace {

std::string name_of(const CLI::Option& option) { return option.get_lnames().front(); }

}  // namespace

void ChatSettings::add_length(CLI::App& app) {
    app.add_option("-n,--predict,--n-predict", n_predict_,
                   "Tokens of an answer at most; -1 = until its end or a full context")
        ->check(CLI::Range(-1, INT32_MAX))
        ->capture_default_str()
        ->group("Chat");
}

void ChatSettings::add(CLI::App& app) {
    add_length(app);
    sampling_.add(app);
}

GenerationParams ChatSettings::params(const Tokenizer& tokenizer) const {
    GenerationParams params{.sampling = sampling_.params(), .n_predict = n_predict_};
    { const Sampler checked(params.sampling, tokenizer); }
    return params;
}

void ChatSettings::set(std::string_view text, const Tokenizer& tokenizer) {
    text.remove_prefix(std::min(text.find_first_not_of('-'), text.size()));
    const size_t space = text.find_first_of(" =");
    const std::string name(text.substr(0, space));
    std::string_view value = space == std::string_view::npos ? "" : text.substr(space + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));

    ChatSettings trial = *this;
    CLI::App app;
    app.set_help_flag();
    trial.add(app);
    tidy_flags(app);
    const std::string flag = (name.size() == 1 ? "-" : "--") + name;
    if (app.get_option_no_throw(flag) == nullptr) {
        fail("there is no setting \"{}\"; /set lists them", name);
    }
    std::vector<std::string> words{flag};
    if (!value.empty()) {
        // One word, so that a value that begins with a dash is none of the flags.
        words = name.size() == 1 ? std::vector<std::string>{std::string(value), flag}
                                 : std::vector<std::string>{fmt::format("{}={}", flag, value)};
    }
    try {
        app.parse(words);
    } catch (const CLI::ParseError& error) {
        fail("/set {}: {}", name, error.what());
    }
    trial.params(tokenizer);
    *this = std::move(trial);
}

std::string ChatSettings::list() const {
    ChatSettings shown = *this;  // options want something that they could write to
    CLI::App app;
    app.set_help_flag();
    shown.add(app);
    std::string text;
    std::string others;
    for (const CLI::Option* const option : app.get_options()) {
        const std::string value = option->get_default_str();
        if (value.empty()) {
            others += (others.empty() ? "" : ", ") + name_of(*option);
        } else {
            text += fmt::format("{:<20} {}\n", name_of(*option), value);
        }
    }
    return text + fmt::format("also: {}\n", others);
}

}  // namespace pleat::cli
