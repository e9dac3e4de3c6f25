#include "arch/registry.h"

#include <algorithm>
#include <array>
#include <utility>

#include "arch/rows.h"
#include "base/error.h"
#include "gguf/rules.h"

namespace pleat {

std::span<const Architecture* const> architectures() {
    static const std::array table{&llama_architecture(),     &qwen2_architecture(),
                                  &qwen3_architecture(),     &qwen3moe_architecture(),
                                  &gemma3_architecture(),    &qwen35_architecture(),
                                  &qwen35moe_architecture(), &gemma4_architecture()};
    return table;
}

std::shared_ptr<Model> open_model(const std::string& path, ModelOptions options) {
    gguf::File file = gguf::File::open(path);
    const std::string name = file.required_string("general.architecture");
    const auto table = architectures();
    const auto row =
        std::ranges::find_if(table, [&](const Architecture* a) { return a->name == name; });
    if (row == table.end()) {
        std::string names;
        for (const Architecture* a : table) {
            if (!names.empty()) names += ", ";
            names += a->name;
        }
        fail("{}: architecture \"{}\" is not supported (key general.architecture); supported: {}",
             path, gguf::escaped(name), names);
    }
    return std::make_shared<Model>(std::move(file), **row, options);
}

}  // namespace pleat
