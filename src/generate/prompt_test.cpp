#include "generate/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gguf/file.h"
#include "gguf/writer.h"
#include "support/temp_file.h"
#include "text/demo_model_for_test.h"

namespace pleat {
namespace {

using test::demo_tokenizer;
using test::message_of;
using testing::ElementsAre;
using testing::EndsWith;

/// The demo model's vocabulary with one of its yes-or-no keys set.
Tokenizer demo_with(const std::string& key, bool value) {
    std::vector<gguf::KeyValue> metadata =
        gguf::File::open(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf").metadata();
    for (gguf::KeyValue& kv : metadata) {
        if (kv.key == key) kv.value = gguf::Value(value);
    }
    const test::TempFile file(".gguf");
    gguf::write(file.path(), metadata, {});
    return Tokenizer::open(file.path());
}

TEST(PromptTokens, BeginWithBosAndReadControlTokens) {
    const Tokenizer& t = demo_tokenizer();
    const std::vector<int32_t> tokens = prompt_tokens(t, "<|end|>");
    EXPECT_THAT(tokens, ElementsAre(t.bos(), t.eot()));
}

TEST(PromptTokens, OfNothingAreBosAlone) {
    EXPECT_THAT(prompt_tokens(demo_tokenizer(), ""), ElementsAre(demo_tokenizer().bos()));
}

TEST(PromptTokens, OfNothingWithoutBosAreRefused) {
    const Tokenizer t = demo_with("tokenizer.ggml.add_bos_token", false);
    EXPECT_THAT(message_of([&] { prompt_tokens(t, ""); }),
                EndsWith("has no BOS token to start from: give one with -p"));
    EXPECT_EQ(prompt_tokens(t, "abc"), demo_tokenizer().tokenize("abc", false, false));
}

TEST(PromptTokens, NeverEndWithTheEosThatAFileAsksFor) {
    const Tokenizer t = demo_with("tokenizer.ggml.add_eos_token", true);
    ASSERT_TRUE(t.add_eos());
    EXPECT_EQ(prompt_tokens(t, "abc"), prompt_tokens(demo_tokenizer(), "abc"));
}

TEST(ChatPromptTokens, AreTheTemplatesText) {
    const Tokenizer& t = demo_tokenizer();
    EXPECT_EQ(chat_prompt_tokens(t, "", "Hello"),
              t.tokenize("<|user|>\nHello<|end|>\n<|assistant|>\n", true, true));
    EXPECT_EQ(chat_prompt_tokens(t, "Be brief.", "Hello"),
              t.tokenize("<|system|>\nBe brief.<|end|>\n<|user|>\nHello<|end|>\n<|assistant|>\n",
                         true, true));
}

TEST(ChatPromptTokens, DoNotDoubleABosThatTheTemplateWrites) {
    const Tokenizer& t = demo_tokenizer();
    const ChatTemplate chat("{{ bos_token }}{{ messages[0].content }}", t.piece(t.bos(), true), "");
    EXPECT_EQ(chat_prompt_tokens(t, chat, {{.role = "user", .content = "Hello"}}),
              t.tokenize("Hello", true, true));
}

}  // namespace
}  // namespace pleat
