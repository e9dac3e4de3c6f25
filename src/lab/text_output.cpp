#include "lab/text_output.h"

#include <cstddef>
#include <span>

#include "gguf/output_file.h"

namespace pleat {

void write_text(const std::string& path, const std::string& text) {
    gguf::OutputFile file(path);
    file.write(std::as_bytes(std::span(text)));
    file.commit();
}

}  // namespace pleat
