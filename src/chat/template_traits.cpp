#include "chat/template_traits.h"

#include <optional>

#include "base/error.h"

namespace pleat {
namespace {

using Json = nlohmann::ordered_json;

const std::string needle = "pleat-needle";

bool has(std::string_view text, std::string_view part) {
    return text.find(part) != std::string_view::npos;
}

Json message(std::string_view role, Json content) {
    return {{"role", role}, {"content", std::move(content)}};
}

Json part(Json text) { return Json::array({{{"type", "text"}, {"text", std::move(text)}}}); }

Json call(Json content, Json arguments) {
    Json result = message("assistant", std::move(content));
    result["tool_calls"] =
        Json::array({{{"id", "call00001"},
                      {"type", "function"},
                      {"function", {{"name", "some_tool"}, {"arguments", std::move(arguments)}}}}});
    return result;
}

Json answer(Json content) {
    Json result = message("tool", std::move(content));
    result["tool_call_id"] = "call00001";
    result["name"] = "some_tool";
    return result;
}

const Json some_tools =
    Json::array({{{"type", "function"},
                  {"function",
                   {{"name", "some_tool"},
                    {"description", "Does something."},
                    {"parameters",
                     {{"type", "object"}, {"properties", {{"needle", {{"type", "string"}}}}}}}}}}});

class Trial {
  public:
    Trial(const ChatTemplate& chat, std::string_view text) : chat_(chat), text_(text) {}

    TemplateTraits run() {
        require_some_text();
        roles();
        calls();
        return {.needs = needs_, .tools = form_, .reasoning = marks()};
    }

  private:
    /// Nothing when the template refuses the messages.
    std::optional<std::string> render(Json messages, const Json& tools = nullptr) {
        try {
            return chat_.render({.messages = std::move(messages),
                                 .tools = tools,
                                 .tools_defined = needs_.tools_defined || !tools.is_null()});
        } catch (const Error& e) {
            if (reason_.empty()) reason_ = e.what();
            return {};
        }
    }

    bool shows(Json messages) {
        const auto text = render(std::move(messages));
        return text && has(*text, needle);
    }

    void require_some_text() {
        bool rendered = false;
        for (const bool defined : {true, false}) {
            for (const bool parts : {false, true}) {
                needs_.tools_defined = defined;
                needs_.content_parts = parts;
                const auto text = render(Json::array({message("user", content(needle))}));
                if (text && has(*text, needle)) return;
                rendered = rendered || text;
            }
        }
        // A name such as "chatml", which llama.cpp knows, is Jinja text, too.
        if (rendered) {
            fail(
                "chat template shows nothing of what the user says: expected Jinja text, not the "
                "name of a template");
        }
        fail("{}", reason_);
    }

    Json content(const std::string& text) const {
        return needs_.content_parts ? part(text) : Json(text);
    }

    Json hello() const { return message("user", content("Hi")); }

    void roles() {
        needs_.system_role = shows(Json::array({message("system", content(needle)), hello()}));
        needs_.developer_role =
            has(text_, "developer") &&
            shows(Json::array({message("developer", content(needle)), hello()}));
    }

    void calls() {
        const Json arguments{{"needle", "value"}};
        const auto with = [&](const Json& said, const Json& given) {
            const auto text = render(
                Json::array({hello(), call(said, given), answer(content("done"))}), some_tools);
            return text.value_or("");
        };
        for (const bool null : {true, false}) {
            needs_.null_content = null;
            const Json silence = null ? Json() : content("");
            const std::string as_object = with(silence, arguments);
            const std::string as_text = with(silence, arguments.dump());
            // A mapping written in Python's way means that a text was expected.
            const bool object_works = shows_call(as_object) && !has(as_object, "'needle'");
            needs_.arguments_text = !object_works && shows_call(as_text);
            form_ = form_in(needs_.arguments_text ? as_text : as_object);
            if (object_works || needs_.arguments_text) return;
        }
    }

    /// The call and not only the tool's description.
    static bool shows_call(const std::string& text) { return has(text, "value"); }

    static ToolForm form_in(const std::string& text) {
        if (has(text, "<|tool_call>call:some_tool{")) return ToolForm::gemma4;
        if (has(text,
                "<tool_call>\n<function=some_tool>\n<parameter=needle>\nvalue\n</parameter>")) {
            return ToolForm::qwen35;
        }
        const size_t begin = text.rfind("<tool_call>");
        const size_t end = text.find("</tool_call>", begin);
        if (begin != std::string::npos && end != std::string::npos) {
            const size_t from = begin + std::string_view("<tool_call>").size();
            const Json inner = Json::parse(text.substr(from, end - from), nullptr, false);
            if (inner.is_object() && inner.contains("name") && inner.contains("arguments")) {
                return ToolForm::hermes;
            }
        }
        if (has(text, R"({"name": "some_tool", "parameters": {"needle": "value"}})")) {
            return ToolForm::llama3;
        }
        return ToolForm::none;
    }

    ReasoningMarks marks() const {
        if (has(text_, "</think>")) return {"<think>", "</think>"};
        if (has(text_, "<|channel>thought")) return {"<|channel>thought", "<channel|>"};
        if (has(text_, "[/THINK]")) return {"[THINK]", "[/THINK]"};
        return {};
    }

    const ChatTemplate& chat_;
    std::string_view text_;
    TemplateNeeds needs_;
    ToolForm form_ = ToolForm::none;
    std::string reason_;  ///< of the first failure
};

}  // namespace

TemplateTraits traits_of(const ChatTemplate& chat, std::string_view template_text) {
    return Trial(chat, template_text).run();
}

}  // namespace pleat
