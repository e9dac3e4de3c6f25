#include "text/chat_template.h"

#include <utility>

#include "base/error.h"
#include "jinja/template.h"
#include "text/deep_stack.h"

namespace pleat {
namespace {

/// For the nesting that the parser lets through, and for macros in each other.
// Frames of instrumented code are several times as large.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t frame_factor = 6;
#else
constexpr size_t frame_factor = 1;
#endif
constexpr size_t parse_stack = frame_factor * (size_t{64} << 20);
constexpr size_t render_stack = frame_factor * (size_t{256} << 20);

/// With room for the recursion, and with one kind of failure.
void guarded(size_t stack, const std::function<void()>& work) {
    try {
        on_deep_stack(stack, work);
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        fail("chat template: {}", e.what());
    }
}

}  // namespace

struct ChatTemplate::Program {
    jinja::Template jinja;
};

ChatTemplate::ChatTemplate(const std::string& text, std::string bos, std::string eos)
    : bos_(std::move(bos)), eos_(std::move(eos)) {
    if (text.empty()) {
        fail("the file has no chat template; give one, or a prompt without roles");
    }
    guarded(parse_stack,
            [&] { program_ = std::make_unique<const Program>(Program{jinja::Template(text)}); });
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

const std::vector<std::string>& ChatTemplate::missing() const { return program_->jinja.missing(); }

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
        // What Hugging Face passes: None where there is nothing.
        nlohmann::ordered_json variables{{"messages", inputs.messages},
                                         {"documents", nullptr},
                                         {"add_generation_prompt", inputs.add_generation_prompt},
                                         {"bos_token", bos_},
                                         {"eos_token", eos_}};
        if (inputs.tools_defined) variables["tools"] = inputs.tools;
        variables.update(inputs.arguments);
        prompt = program_->jinja.render(variables);
    });
    return prompt;
}

}  // namespace pleat
