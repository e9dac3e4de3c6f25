#include "text/chat_template.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <minja.hpp>
#include <utility>

#include "base/error.h"
#include "text/deep_stack.h"
#include "text/template_check.h"

namespace pleat {
namespace {

using Scope = std::shared_ptr<minja::Context>;

constexpr int max_macro_depth = 100;
/// Names looked up; a conversation of a thousand messages needs a tenth of it.
constexpr int max_steps = 500'000;
constexpr size_t max_prompt_bytes = size_t{64} << 20;
constexpr int64_t max_range = 100'000;

/// For regular expressions that recurse per character of the template, and for the nesting that
/// check_template lets through.
constexpr size_t parse_stack = size_t{512} << 20;
constexpr size_t render_stack = size_t{256} << 20;

/// No std::exception on purpose: minja adds source lines to those at every level that they leave,
/// which for a deep recursion is more text than the machine has memory.
struct Abort {
    std::string reason;
};

/// The outermost scope. All macros are defined in it (check_template sees to that) and nearly every
/// name is looked up in it, so this is where recursion and work are bounded.
class BoundedScope : public minja::Context {
  public:
    explicit BoundedScope(minja::Value&& values)
        : Context(std::move(values), Context::builtins()) {}

    bool contains(const minja::Value& key) override {
        count_step();
        return Context::contains(key);
    }

    void set(const minja::Value& key, const minja::Value& value) override {
        if (!value.is_callable()) return Context::set(key, value);
        Context::set(key, minja::Value::callable(
                              [this, value](const Scope& caller, minja::ArgumentsValue& args) {
                                  const Level level(*this);
                                  return value.call(caller, args);
                              }));
    }

    /// A macro refers to the scope that holds it; without this neither would ever be freed.
    void clear() { values_ = minja::Value::object(); }

  private:
    /// One call that has not returned yet.
    class Level {
      public:
        explicit Level(BoundedScope& scope) : scope_(scope) {
            scope_.count_step();
            if (scope_.depth_ >= max_macro_depth) {
                throw Abort{
                    fmt::format("macros call each other more than {} deep", max_macro_depth)};
            }
            ++scope_.depth_;
        }
        ~Level() { --scope_.depth_; }
        Level(const Level&) = delete;
        Level& operator=(const Level&) = delete;

      private:
        BoundedScope& scope_;
    };

    void count_step() {
        if (++steps_ > max_steps) {
            throw Abort{fmt::format("does not end within {} steps", max_steps)};
        }
    }

    int depth_ = 0;
    int steps_ = 0;
};

minja::Value range(const minja::ArgumentsValue& args) {
    const size_t n = args.args.size();
    if (n < 1 || n > 3 || !args.kwargs.empty()) throw Abort{"range takes one to three numbers"};
    const auto number = [&](size_t i) { return args.args[i].get<int64_t>(); };
    const int64_t start = n == 1 ? 0 : number(0);
    const int64_t end = number(n == 1 ? 0 : 1);
    const int64_t step = n == 3 ? number(2) : 1;
    minja::Value result = minja::Value::array();
    for (int64_t i = start, k = 0; step > 0 ? i < end : i > end; ++k) {
        if (k == max_range || step == 0) {
            throw Abort{fmt::format("range of more than {} numbers", max_range)};
        }
        result.push_back(minja::Value(i));
        if (__builtin_add_overflow(i, step, &i)) break;
    }
    return result;
}

std::string strftime_now(const std::string& format) {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    std::array<char, 256> text{};
    const size_t size = std::strftime(text.data(), text.size(), format.c_str(), &local);
    return {text.data(), size};
}

minja::Value first(const minja::Value& items) {
    if (items.is_string()) return items.get<std::string>().substr(0, 1);
    if (!items.is_array()) throw Abort{"first needs a list"};
    return items.size() == 0 ? minja::Value() : items.at(size_t{0});
}

minja::Value reverse(const minja::Value& items) {
    if (items.is_string()) {
        std::string text = items.get<std::string>();
        std::ranges::reverse(text);
        return text;
    }
    if (!items.is_array()) throw Abort{"reverse needs a list"};
    minja::Value result = minja::Value::array();
    for (size_t i = items.size(); i > 0; --i) result.push_back(items.at(i - 1));
    return result;
}

minja::Value replace(const std::string& text, const std::string& from, const std::string& to) {
    if (from.empty()) return text;
    std::string result;
    size_t pos = 0;
    for (size_t hit = 0; (hit = text.find(from, pos)) != std::string::npos;
         pos = hit + from.size()) {
        result.append(text, pos, hit - pos).append(to);
    }
    return result.append(text, pos);
}

template <typename Function>
minja::Value callable(std::string name, size_t n_args, Function function) {
    return minja::Value::callable([=](const Scope&, minja::ArgumentsValue& args) -> minja::Value {
        args.expectArgs(name, {n_args, n_args}, {0, 0});
        return function(args.args);
    });
}

/// What templates of models in use call, and minja lacks or leaves unbounded.
void add_functions(minja::Context& scope) {
    using Args = std::vector<minja::Value>;
    scope.set("raise_exception", callable("raise_exception", 1, [](const Args& a) -> minja::Value {
                  throw Abort{a[0].to_str()};
              }));
    scope.set("strftime_now", callable("strftime_now", 1, [](const Args& a) -> minja::Value {
                  return strftime_now(a[0].get<std::string>());
              }));
    scope.set("range", minja::Value::callable(
                           [](const Scope&, minja::ArgumentsValue& args) { return range(args); }));
    scope.set("first", callable("first", 1, [](const Args& a) { return first(a[0]); }));
    scope.set("reverse", callable("reverse", 1, [](const Args& a) { return reverse(a[0]); }));
    scope.set("replace", callable("replace", 3, [](const Args& a) {
                  return replace(a[0].to_str(), a[1].to_str(), a[2].to_str());
              }));
    scope.set("capitalize", callable("capitalize", 1, [](const Args& a) -> minja::Value {
                  return minja::capitalize(a[0].to_str());
              }));
}

/// minja's messages go on with lines of the source, one per level.
std::string first_line(std::string_view message) {
    message = message.substr(0, message.find('\n'));
    if (message.ends_with(':')) message.remove_suffix(1);
    return std::string(message.substr(0, 500));
}

/// Runs a part of minja: with room for its recursion, and with one kind of failure.
void guarded(size_t stack, const std::function<void()>& work) {
    try {
        on_deep_stack(stack, work);
    } catch (const Abort& abort) {
        fail("chat template: {}", first_line(abort.reason));
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        fail("chat template: {}", first_line(e.what()));
    }
}

}  // namespace

struct ChatTemplate::Program {
    std::shared_ptr<minja::TemplateNode> root;
};

ChatTemplate::ChatTemplate(const std::string& text, std::string bos, std::string eos)
    : bos_(std::move(bos)), eos_(std::move(eos)) {
    if (text.empty()) {
        fail("the file has no chat template; give one, or a prompt without roles");
    }
    check_template(text);
    auto program = std::make_unique<Program>();
    guarded(parse_stack, [&] {
        // Hugging Face renders chat templates with these two on.
        program->root = minja::Parser::parse(
            text, {.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false});
    });
    program_ = std::move(program);
}

ChatTemplate ChatTemplate::of(const Tokenizer& tokenizer) {
    if (tokenizer.chat_template().empty()) {
        fail(
            "{}: the file has no chat template (key tokenizer.chat_template); give one, or a "
            "prompt without roles",
            tokenizer.path());
    }
    const auto text = [&](int32_t token) {
        return tokenizer.valid(token) ? tokenizer.piece(token, true) : std::string();
    };
    return {tokenizer.chat_template(), text(tokenizer.bos()), text(tokenizer.eos())};
}

ChatTemplate::~ChatTemplate() = default;
ChatTemplate::ChatTemplate(ChatTemplate&&) noexcept = default;
ChatTemplate& ChatTemplate::operator=(ChatTemplate&&) noexcept = default;

std::string ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                 bool add_generation_prompt) const {
    TemplateInputs inputs{.add_generation_prompt = add_generation_prompt};
    for (const ChatMessage& message : messages) {
        inputs.messages.push_back({{"role", message.role}, {"content", message.content}});
    }
    return render(inputs);
}

std::string ChatTemplate::render(const TemplateInputs& inputs) const {
    std::string prompt;
    guarded(render_stack, [&] {
        nlohmann::ordered_json variables{{"messages", inputs.messages},
                                         {"add_generation_prompt", inputs.add_generation_prompt},
                                         {"bos_token", bos_},
                                         {"eos_token", eos_}};
        if (!inputs.tools.is_null()) variables["tools"] = inputs.tools;
        variables.update(inputs.arguments);
        const auto scope = std::make_shared<BoundedScope>(minja::Value(variables));
        const std::unique_ptr<BoundedScope, void (*)(BoundedScope*)> cleared(
            scope.get(), [](BoundedScope* s) { s->clear(); });
        add_functions(*scope);
        prompt = program_->root->render(scope);
        if (prompt.size() > max_prompt_bytes) {
            throw Abort{
                fmt::format("renders {} bytes, at most {}", prompt.size(), max_prompt_bytes)};
        }
    });
    return prompt;
}

}  // namespace pleat
