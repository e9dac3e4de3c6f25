#pragma once

#include <ggml.h>

#include <string>

namespace pleat {

/// While it lives, what libllama and ggml log goes here and not to stderr; one line of it becomes
/// part of an Error. The log is one per process, so captures wait for each other, and the callbacks
/// of before are put back at the end.
class LlamaLog {
  public:
    LlamaLog();
    ~LlamaLog();
    LlamaLog(const LlamaLog&) = delete;
    LlamaLog& operator=(const LlamaLog&) = delete;

    /// The first error line without its function's name, or `otherwise`.
    std::string reason(const std::string& otherwise) const;

  private:
    static void receive(ggml_log_level level, const char* text, void* self);

    std::string errors_;
    bool in_error_ = false;
    ggml_log_callback ggml_before_ = nullptr;
    ggml_log_callback llama_before_ = nullptr;
    void* ggml_before_data_ = nullptr;
    void* llama_before_data_ = nullptr;
};

}  // namespace pleat
