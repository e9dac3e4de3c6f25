#include "gguf/file.h"

#include <filesystem>
#include <iterator>
#include <utility>

#include "base/error.h"
#include "gguf/header.h"
#include "gguf/rules.h"
#include "gguf/split.h"

namespace pleat::gguf {
namespace {

constexpr std::string_view split_no = "split.no";                  // of this part, from 0
constexpr std::string_view split_count = "split.count";            // of parts
constexpr std::string_view split_tensors = "split.tensors.count";  // of all parts together

std::string without_extension(const std::string& path) {
    constexpr std::string_view extension = ".gguf";
    const bool has = path.size() > extension.size() && path.ends_with(extension);
    return has ? path.substr(0, path.size() - extension.size()) : path;
}

/// The siblings are found by their names, so the first part's own name must have the form.
std::string split_prefix(const File& first, uint32_t count) {
    const std::string& path = first.path();
    const uint32_t no = first.required_u32(split_no);
    const auto name = parse_split_name(path);
    const std::string prefix = name ? name->prefix : without_extension(path);
    if (no >= count) {
        fail("{}: key split.no is {}, expected less than split.count = {}", path, no, count);
    }
    if (no != 0) {
        fail("{}: is part {} of {} of a split model; open the first part, {}", path, no + 1, count,
             split_path(prefix, 1, count));
    }
    if (name != SplitName{prefix, 1, count}) {
        fail(
            "{}: is part 1 of {} of a split model (split.no, split.count), so its name is "
            "expected to be {}",
            path, count, split_path(prefix, 1, count));
    }
    return prefix;
}

void check_sibling(const File& part, const File& first, std::string_view key, uint32_t expected) {
    const uint32_t found = part.required_u32(key);
    if (found == expected) return;
    fail("{}: key {} is {}, expected {} in this part of {}", part.path(), key, found, expected,
         first.path());
}

}  // namespace

File File::open_part(const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        fail("{}: is a directory, expected a GGUF file", path);
    }
    File file;
    file.parts_.emplace_back(path);
    Header header = parse_header(path, file.parts_.front().bytes());
    file.version_ = header.version;
    file.alignment_ = header.alignment;
    file.metadata_ = std::move(header.metadata);
    file.tensors_ = std::move(header.tensors);
    for (size_t i = 0; i < file.metadata_.size(); ++i) {
        file.key_index_.emplace(file.metadata_[i].key, i);
    }
    for (size_t i = 0; i < file.tensors_.size(); ++i) {
        file.tensor_index_.emplace(file.tensors_[i].name, i);
    }
    return file;
}

void File::add_part(File part) {
    const auto number = static_cast<uint32_t>(parts_.size());
    for (TensorInfo& tensor : part.tensors_) {
        tensor.part = number;
        const auto [found, is_new] = tensor_index_.emplace(tensor.name, tensors_.size());
        if (!is_new) {
            fail("{}: tensor {} is in {} too, expected in one part only", part.path(),
                 escaped(tensor.name), parts_[tensors_[found->second].part].path());
        }
        tensors_.push_back(std::move(tensor));
    }
    parts_.push_back(std::move(part.parts_.front()));
}

File File::open(const std::string& path) {
    File file = open_part(path);
    const uint32_t count = file.u32(split_count).value_or(1);
    if (count <= 1) return file;

    const std::string prefix = split_prefix(file, count);
    const uint32_t n_tensors = file.required_u32(split_tensors);
    for (uint32_t no = 1; no < count; ++no) {
        const std::string sibling = split_path(prefix, no + 1, count);
        if (std::error_code error; !std::filesystem::exists(sibling, error)) {
            fail("{}: part {} of {} is missing, expected {}", path, no + 1, count, sibling);
        }
        File part = open_part(sibling);
        check_sibling(part, file, split_no, no);
        check_sibling(part, file, split_count, count);
        check_sibling(part, file, split_tensors, n_tensors);
        file.add_part(std::move(part));
    }
    if (file.tensors_.size() != n_tensors) {
        fail("{}: all {} parts hold {} tensors, expected split.tensors.count = {}", path, count,
             file.tensors_.size(), n_tensors);
    }
    return file;
}

const Value* File::find(std::string_view key) const {
    const auto found = key_index_.find(std::string(key));
    return found == key_index_.end() ? nullptr : &metadata_[found->second].value;
}

const TensorInfo* File::find_tensor(std::string_view name) const {
    const auto found = tensor_index_.find(std::string(name));
    return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

std::span<const std::byte> File::data(const TensorInfo& tensor) const {
    return parts_.at(tensor.part).bytes().subspan(tensor.offset, tensor.bytes);
}

uint64_t File::file_bytes() const {
    uint64_t sum = 0;
    for (const MappedFile& part : parts_) sum += part.bytes().size();
    return sum;
}

}  // namespace pleat::gguf
