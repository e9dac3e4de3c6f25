// Files that people give to a GGUF reader by mistake.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "gguf/header.h"
#include "gguf/rules.h"

namespace pleat::gguf {
namespace {

bool is_text(std::string_view bytes) {
    return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte >= 0x20 ? byte != 0x7f : c == '\n' || c == '\r' || c == '\t';
    });
}

/// safetensors: the length of a JSON object in 64 bits, then the object.
bool is_safetensors(std::span<const std::byte> bytes, std::string_view head) {
    uint64_t json_bytes = 0;
    if (head.size() <= sizeof(json_bytes)) return false;
    std::memcpy(&json_bytes, bytes.data(), sizeof(json_bytes));
    return head[sizeof(json_bytes)] == '{' && json_bytes < bytes.size();
}

}  // namespace

std::string describe_foreign_file(std::span<const std::byte> bytes) {
    const std::string_view head(reinterpret_cast<const char*>(bytes.data()),
                                std::min<size_t>(bytes.size(), 64));
    if (head.empty()) return "is empty, expected a GGUF file";
    if (head.size() < magic.size() && magic.substr(0, head.size()) == head) {
        return fmt::format("is cut off after {} bytes, expected a GGUF file", head.size());
    }
    if (head.rfind("version https://git-lfs", 0) == 0) {
        return "is a Git LFS pointer, not the model; fetch the model with `git lfs pull`";
    }
    const std::string_view first = head.substr(0, 4);
    // The numbers 'ggml', 'ggmf', 'ggjt', 'ggla', stored little endian.
    if (first == "lmgg" || first == "fmgg" || first == "tjgg" || first == "algg") {
        return "is a GGML file from before GGUF; convert the model again with a current llama.cpp";
    }
    if (first == "FUGG") return "has the magic FUGG, expected GGUF: the bytes are swapped";
    if (first == "PK\x03\x04") {
        return "is a zip archive (a PyTorch checkpoint?), expected a GGUF file; convert it with "
               "llama.cpp's convert_hf_to_gguf.py";
    }
    if (is_safetensors(bytes, head)) {
        return "is a safetensors file, expected a GGUF file; convert the model with llama.cpp's "
               "convert_hf_to_gguf.py";
    }
    if (is_text(head)) {
        return fmt::format("is a text file that begins \"{}\", expected a GGUF file",
                           escaped(head.substr(0, 24)));
    }
    return fmt::format("begins with the bytes \"{}\", expected \"{}\": not a GGUF file",
                       escaped(first), magic);
}

}  // namespace pleat::gguf
