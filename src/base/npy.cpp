#include "base/npy.h"

#include <fmt/format.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"

namespace pleat {

static_assert(std::endian::native == std::endian::little, "the header below says little endian");

void write_npy(const std::string& path, std::span<const float> values, size_t n_rows,
               size_t n_columns) {
    if (values.size() != n_rows * n_columns) {
        fail("{}: {} values for a shape of {} x {}", path, values.size(), n_rows, n_columns);
    }
    std::string header = fmt::format(
        "{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}", n_rows, n_columns);
    // Magic, version and length take 10 bytes; the data begins at a multiple of 64, after a
    // newline.
    constexpr size_t prefix = 10;
    header.append((64 - (prefix + header.size() + 1) % 64) % 64, ' ');
    header += '\n';
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    if (!file) fail("{}: cannot create: {}", path, std::strerror(errno));
    const auto length = static_cast<uint16_t>(header.size());
    file.write("\x93NUMPY\x01\x00", 8);
    file.put(static_cast<char>(length & 0xFF)).put(static_cast<char>(length >> 8));
    file << header;
    file.write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
    file.flush();
    if (!file) fail("{}: cannot write: {}", path, std::strerror(errno));
}

}  // namespace pleat
