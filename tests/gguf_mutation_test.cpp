// Valid files, damaged at random: an Error of one line, or a header that keeps its promises.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "gguf/file.h"
#include "support/gguf_invariants.h"
#include "support/raw_gguf.h"
#include "support/temp_dir.h"

namespace pleat {
namespace {

constexpr uint32_t n_cases = 20000;

using Random = std::mt19937;

size_t below(Random& random, size_t n) { return n == 0 ? 0 : random() % n; }

/// Values at which readers go wrong.
uint64_t bad_number(Random& random) {
    constexpr std::array<uint64_t, 14> numbers{
        0,          1,          2,           9,           13,        0x7f,        0x80,
        0xffffffff, 0x80000000, 1ULL << 61U, 1ULL << 62U, INT64_MAX, 1ULL << 63U, UINT64_MAX};
    return numbers[below(random, numbers.size())] + (random() % 4 == 0 ? random() % 64 : 0);
}

void damage(std::string& bytes, Random& random) {
    const size_t at = below(random, bytes.size());
    switch (random() % 6) {
        case 0:
            if (!bytes.empty()) bytes[at] = static_cast<char>(bytes[at] ^ (1U << (random() % 8)));
            break;
        case 1:
            if (!bytes.empty()) bytes[at] = static_cast<char>(random());
            break;
        case 2: {
            const uint64_t number = bad_number(random);
            const size_t width = random() % 2 == 0 ? 4 : 8;
            std::memcpy(bytes.data() + at, &number, std::min(width, bytes.size() - at));
            break;
        }
        case 3:
            bytes.erase(at, 1 + below(random, 16));
            break;
        case 4:
            bytes.insert(at, bytes.substr(below(random, bytes.size()), random() % 40));
            break;
        case 5:
            bytes.resize(at);
            break;
    }
}

/// With and without its data: half of the damage should not be lost in there.
std::string damaged(uint32_t seed) {
    Random random(seed);
    RawGguf raw = tiny_raw_gguf();
    if (random() % 4 == 0) raw.tensors.clear();
    if (random() % 2 == 0) std::shuffle(raw.keys.begin(), raw.keys.end(), random);
    std::string bytes = raw.bytes();
    for (size_t n = 1 + random() % 3; n > 0; --n) damage(bytes, random);
    return bytes;
}

TEST(DamagedGguf, IsAnErrorOrAHeaderThatKeepsItsPromises) {
    uint32_t n_accepted = 0;
    for (uint32_t seed = 0; seed < n_cases; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const std::string bytes = damaged(seed);
        // Of exactly this size, so that the sanitizer sees a read of one byte too many.
        const auto copy = std::make_unique<std::byte[]>(bytes.size());
        std::memcpy(copy.get(), bytes.data(), bytes.size());
        ASSERT_NO_THROW(n_accepted += accepts_header({copy.get(), bytes.size()}) ? 1 : 0);
    }
    // Damage to text and weights cannot be seen; all other damage should be met too.
    EXPECT_GT(n_accepted, n_cases / 20);
    EXPECT_LT(n_accepted, n_cases / 2);
}

TEST(DamagedGguf, CanBeUsedAsAFileWhenItIsAccepted) {
    const TempDir dir;
    for (uint32_t seed = n_cases; seed < n_cases + 500; ++seed) {
        SCOPED_TRACE(fmt::format("seed {}", seed));
        const std::string path = dir.file_with("d.gguf", damaged(seed));
        try {
            const gguf::File file = gguf::File::open(path);
            unsigned sum = 0;
            for (const gguf::TensorInfo& tensor : file.tensors()) {
                for (const std::byte b : file.data(tensor)) sum += std::to_integer<unsigned>(b);
            }
            EXPECT_GE(sum, 0U);
            file.u32("llama.block_count");
            file.i32_array("tokenizer.ggml.token_type");
            file.boolean_per_layer("test.flags", 2);
        } catch (const Error& e) {
            EXPECT_EQ(std::string(e.what()).rfind(path + ": ", 0), 0U) << e.what();
        }
    }
}

}  // namespace
}  // namespace pleat
