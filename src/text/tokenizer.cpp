#include "text/tokenizer.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "base/error.h"
#include "gguf/file.h"
#include "text/deep_stack.h"
#include "text/llama_log.h"
#include "text/vocab_check.h"

namespace pleat {
namespace {

/// Many splitters are regular expressions that recurse once per character of a word, some hundred
/// bytes each; a run of this length still fits on any thread's own stack.
constexpr size_t shallow_run = 2048;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__)
// The linker may take our own instances of the splitter's templates, whose frames are larger then.
constexpr size_t deep_bytes_per_char = 8192;
#else
constexpr size_t deep_bytes_per_char = 1024;
#endif

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The longest stretch of only spaces, or of none: what one step of a splitter may match.
size_t longest_run(std::string_view text) {
    size_t longest = 0;
    size_t start = 0;
    for (size_t i = 1; i <= text.size(); ++i) {
        if (i < text.size() && is_space(text[i]) == is_space(text[start])) continue;
        longest = std::max(longest, i - start);
        start = i;
    }
    return longest;
}

std::vector<int32_t> split(const llama_vocab* vocab, std::string_view text, bool add_special,
                           bool parse_special) {
    const auto size = static_cast<int32_t>(text.size());
    // Byte fallback gives at most a token per byte; a few more for BOS, EOS and a leading space.
    std::vector<int32_t> tokens(text.size() + 8);
    int32_t n = llama_tokenize(vocab, text.data(), size, tokens.data(),
                               static_cast<int32_t>(tokens.size()), add_special, parse_special);
    if (n < 0 && n != std::numeric_limits<int32_t>::min()) {
        tokens.resize(static_cast<size_t>(-n));
        n = llama_tokenize(vocab, text.data(), size, tokens.data(), -n, add_special, parse_special);
    }
    if (n < 0) fail("cannot tokenize a text of {} bytes: too many tokens", text.size());
    tokens.resize(static_cast<size_t>(n));
    return tokens;
}

}  // namespace

Tokenizer Tokenizer::open(const std::string& path) {
    // The header is proved here first: libllama ends the process on some broken files.
    const gguf::File file = gguf::File::open(path);
    const std::string kind = file.string("tokenizer.ggml.model").value_or("none");
    if (kind == "none" || kind == "no_vocab") {
        fail(
            "{}: the file has no tokenizer (key tokenizer.ggml.model), and everything that reads "
            "or writes text needs one: run, perplexity, eval, scan, calibrate, search; inspect, "
            "plan, bench, bake and logits do without",
            path);
    }

    check_vocabulary(file);

    llama_model_params params = llama_model_default_params();
    params.vocab_only = true;
    params.n_gpu_layers = 0;
    Tokenizer result;
    result.path_ = path;
    {
        const LlamaLog log;
        try {
            result.model_.reset(llama_model_load_from_file(path.c_str(), params));
        } catch (const std::exception& e) {
            fail("{}: cannot load the tokenizer: {}", path, e.what());
        }
        if (!result.model_) {
            fail("{}: cannot load the tokenizer: {}", path, log.reason("libllama gives no reason"));
        }
    }
    result.vocab_ = llama_model_get_vocab(result.model_.get());
    if (llama_vocab_type(result.vocab_) == LLAMA_VOCAB_TYPE_NONE || result.n_vocab() <= 0) {
        fail("{}: the tokenizer (tokenizer.ggml.model = {}) has no tokens", path, kind);
    }
    if (const char* text = llama_model_chat_template(result.model_.get(), nullptr)) {
        result.chat_template_ = text;
    }
    return result;
}

std::vector<int32_t> Tokenizer::tokenize(std::string_view text, bool add_special,
                                         bool parse_special) const {
    if (text.size() > max_text_bytes) {
        fail("cannot tokenize a text of {} bytes: at most {} at once", text.size(), max_text_bytes);
    }
    const size_t run = longest_run(text);
    if (run > max_run_bytes) {
        fail("cannot tokenize a text with {} bytes without a break between words: at most {}", run,
             max_run_bytes);
    }
    std::vector<int32_t> tokens;
    const auto work = [&] { tokens = split(vocab_, text, add_special, parse_special); };
    try {
        if (run <= shallow_run) {
            work();
        } else {
            on_deep_stack((size_t{16} << 20) + run * deep_bytes_per_char, work);
        }
    } catch (const Error&) {
        throw;
    } catch (const std::exception& e) {
        fail("cannot tokenize a text of {} bytes: {}", text.size(), e.what());
    }
    return tokens;
}

std::string Tokenizer::piece(int32_t token, bool special) const {
    if (!valid(token)) {
        fail("token {} is not in the vocabulary: it has {} tokens, so 0 <= token < {}", token,
             n_vocab(), n_vocab());
    }
    std::string bytes(32, '\0');
    int32_t n = llama_token_to_piece(vocab_, token, bytes.data(),
                                     static_cast<int32_t>(bytes.size()), 0, special);
    if (n < 0) {
        bytes.resize(static_cast<size_t>(-n));
        n = llama_token_to_piece(vocab_, token, bytes.data(), -n, 0, special);
    }
    if (n < 0) fail("token {} has no text", token);
    bytes.resize(static_cast<size_t>(n));
    return bytes;
}

std::string Tokenizer::detokenize(std::span<const int32_t> tokens, bool special) const {
    for (const int32_t token : tokens) {
        if (!valid(token)) {
            fail("token {} is not in the vocabulary: it has {} tokens, so 0 <= token < {}", token,
                 n_vocab(), n_vocab());
        }
    }
    if (tokens.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
        fail("cannot detokenize {} tokens at once", tokens.size());
    }
    const auto n_tokens = static_cast<int32_t>(tokens.size());
    std::string text(tokens.size() * 4 + 16, '\0');
    int32_t n = llama_detokenize(vocab_, tokens.data(), n_tokens, text.data(),
                                 static_cast<int32_t>(text.size()), false, special);
    if (n < 0) {
        text.resize(static_cast<size_t>(-n));
        n = llama_detokenize(vocab_, tokens.data(), n_tokens, text.data(), -n, false, special);
    }
    if (n < 0) fail("cannot detokenize {} tokens", tokens.size());
    text.resize(static_cast<size_t>(n));
    return text;
}

bool Tokenizer::is_eog(int32_t token) const {
    return valid(token) && llama_vocab_is_eog(vocab_, token);
}

std::vector<int32_t> Tokenizer::eog_tokens() const {
    std::vector<int32_t> tokens;
    for (int32_t token = 0; token < n_vocab(); ++token) {
        if (llama_vocab_is_eog(vocab_, token)) tokens.push_back(token);
    }
    return tokens;
}

std::vector<int32_t> Tokenizer::suppressed_tokens() const {
    int32_t n = 0;
    const llama_token* first = llama_vocab_get_suppress_tokens(vocab_, &n);
    std::vector<int32_t> tokens;
    for (int32_t i = 0; first && i < n; ++i) {
        if (valid(first[i])) tokens.push_back(first[i]);
    }
    return tokens;
}

int32_t Tokenizer::n_vocab() const { return llama_vocab_n_tokens(vocab_); }
int32_t Tokenizer::bos() const { return llama_vocab_bos(vocab_); }
int32_t Tokenizer::eos() const { return llama_vocab_eos(vocab_); }
int32_t Tokenizer::eot() const { return llama_vocab_eot(vocab_); }
bool Tokenizer::add_bos() const { return llama_vocab_get_add_bos(vocab_); }
bool Tokenizer::add_eos() const { return llama_vocab_get_add_eos(vocab_); }

}  // namespace pleat
