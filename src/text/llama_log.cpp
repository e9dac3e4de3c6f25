#include "text/llama_log.h"

#include <llama.h>

#include <mutex>

namespace pleat {
namespace {

std::mutex& capture_mutex() {
    static std::mutex mutex;
    return mutex;
}

}  // namespace

LlamaLog::LlamaLog() {
    capture_mutex().lock();
    ggml_log_get(&ggml_before_, &ggml_before_data_);
    llama_log_get(&llama_before_, &llama_before_data_);
    llama_log_set(receive, this);
    ggml_log_set(receive, this);
}

LlamaLog::~LlamaLog() {
    // libllama's setter also sets ggml's, so ggml's comes last.
    llama_log_set(llama_before_, llama_before_data_);
    ggml_log_set(ggml_before_, ggml_before_data_);
    capture_mutex().unlock();
}

void LlamaLog::receive(ggml_log_level level, const char* text, void* self) {
    LlamaLog& log = *static_cast<LlamaLog*>(self);
    if (level != GGML_LOG_LEVEL_CONT) log.in_error_ = level == GGML_LOG_LEVEL_ERROR;
    if (log.in_error_ && log.errors_.size() < 4096) log.errors_ += text;
}

std::string LlamaLog::reason(const std::string& otherwise) const {
    std::string line = errors_.substr(0, errors_.find('\n'));
    const size_t name = line.find(": ");
    if (name != std::string::npos && line.find(' ') > name) line.erase(0, name + 2);
    return line.empty() ? otherwise : line;
}

}  // namespace pleat
