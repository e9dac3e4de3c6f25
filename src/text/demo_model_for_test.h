#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "text/tokenizer.h"

namespace pleat::test {

/// The small trained model of the repository: 1024 tokens of byte-level BPE, the bytes first in
/// GPT-2's order, 1018 BOS, 1021 the end of a turn.
inline const Tokenizer& demo_tokenizer() {
    static const Tokenizer tokenizer =
        Tokenizer::open(PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf");
    return tokenizer;
}

/// The message of the Error that `work` throws; fails the test when it throws none.
template <typename Work>
std::string message_of(Work work) {
    try {
        work();
    } catch (const Error& e) {
        EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos) << e.what();
        return e.what();
    }
    ADD_FAILURE() << "throws no Error";
    return {};
}

}  // namespace pleat::test
