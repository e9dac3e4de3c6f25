// Models of every architecture, damaged or of odd sizes at random: an Error of one line, or a model
// that computes. Nothing of a file or of settings may reach what ends the process inside ggml.
#include <fmt/format.h>
#include <ggml.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "arch/registry.h"
#include "base/error.h"
#include "engine/context.h"
#include "plan/spec.h"
#include "support/model_parts.h"
#include "support/random_model.h"
#include "support/random_models.h"
#include "support/stock.h"
#include "support/temp_file.h"

namespace pleat::test {
namespace {

using testing::HasSubstr;
using testing::Not;

using Random = std::mt19937;

size_t below(Random& random, size_t n) { return n == 0 ? 0 : random() % n; }
bool one_in(Random& random, uint32_t n) { return random() % n == 0; }

template <typename T, size_t n>
T pick(Random& random, const std::array<T, n>& values) {
    return values.at(below(random, n));
}

/// "PLEAT_SEEDS=first,count" replays other seeds than the test's own.
struct Seeds {
    uint32_t first;
    uint32_t count;
};
Seeds seeds(Seeds usual) {
    const char* const text = std::getenv("PLEAT_SEEDS");
    if (text != nullptr) std::sscanf(text, "%u,%u", &usual.first, &usual.count);
    return usual;
}

/// What was tried when ggml ends the process all the same.
std::string& trying() {
    static std::string text;
    return text;
}
void name_case(const std::string& text) {
    trying() = text;
    if (std::getenv("PLEAT_SEEDS") != nullptr) std::fprintf(stderr, "%s\n", text.c_str());
    ggml_set_abort_callback([](const char* message) {
        std::fprintf(stderr, "%s\naborted in: %s\n", message, trying().c_str());
    });
}

std::string random_spec(Random& random, uint32_t n_layer) {
    const auto layer = [&] { return below(random, n_layer); };
    switch (random() % 8) {
        case 0:
            return fmt::format("{},{}", layer(), layer() + 1);
        case 1:
            return fmt::format("0,{}x{}", n_layer, 2 + below(random, 7));
        case 2:
            return fmt::format("drop:{}+drop-ffn:{}", layer(), layer());
        case 3:
            return fmt::format("skip:{}", layer());
        case 4:
            return fmt::format("layers:..,{}[qk=0.5],{}[scale=0.3],..", layer(), layer());
        case 5:
            return fmt::format("layers:{}..0,{}[-attn],{}[-ffn]", n_layer - 1, layer(), layer());
        case 6:
            return fmt::format("layers:..,{}[-attn][-ffn]", layer());
        default:
            return "";
    }
}

ContextSettings random_context(Random& random) {
    constexpr std::array<std::string_view, 10> types{"f16",  "f16",  "f32",    "bf16", "q8_0",
                                                     "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1"};
    constexpr std::array<uint32_t, 6> sizes{1, 2, 7, 64, 256, 700};
    ContextSettings s;
    s.cache.n_ctx = pick(random, sizes);
    s.cache.n_ubatch = pick(random, sizes);
    s.cache.n_seq = one_in(random, 16) ? 256 : 1 + static_cast<uint32_t>(below(random, 4));
    s.cache.kv_unified = one_in(random, 2);
    s.cache.swa_full = one_in(random, 3);
    s.cache.type_k = cache_type(pick(random, types));
    s.cache.type_v = cache_type(pick(random, types));
    s.n_batch = one_in(random, 4) ? pick(random, sizes) : 2048;
    s.flash_attention = one_in(random, 3) ? FlashAttention::off : FlashAttention::on;
    s.n_threads = 1 + static_cast<int>(below(random, 2));
    s.n_threads_batch = s.n_threads;
    return s;
}

std::string describe(const ContextSettings& s) {
    return fmt::format("c {} ub {} b {} np {} {}{} k {} v {} fa {} t {}", s.cache.n_ctx,
                       s.cache.n_ubatch, s.n_batch, s.cache.n_seq,
                       s.cache.kv_unified ? "unified " : "", s.cache.swa_full ? "swa-full" : "",
                       s.cache.type_k.name, s.cache.type_v.name,
                       s.flash_attention == FlashAttention::off ? "off" : "on", s.n_threads);
}

/// Some batches of several sequences, with what a server does between them.
void compute(Context& context, Random& random) {
    const uint32_t n_seq = std::min(context.settings().cache.n_seq, 5U);
    for (int step = 0; step < 3; ++step) {
        Batch batch;
        std::vector<int32_t> next;
        for (uint32_t s = 0; s < n_seq; ++s) {
            next.push_back(context.next_position(static_cast<int32_t>(s)));
        }
        for (size_t n = 1 + below(random, step == 0 ? 70 : 4); n > 0; --n) {
            const auto s = static_cast<int32_t>(below(random, n_seq));
            batch.push_back({.token = static_cast<int32_t>(below(random, context.n_vocab())),
                             .position = next[static_cast<size_t>(s)]++,
                             .sequence = s,
                             .output = n == 1 || one_in(random, 3)});
        }
        if (context.decode(batch) == DecodeStatus::ok) (void)context.logits(0);
        const auto sequence = static_cast<int32_t>(below(random, n_seq));
        const auto other = static_cast<int32_t>(below(random, n_seq));
        try {
            if (one_in(random, 3)) context.remove(other);
            if (one_in(random, 3)) context.copy(sequence, other);
            if (one_in(random, 4)) {
                context.remove(sequence, static_cast<int32_t>(below(random, 20)),
                               static_cast<int32_t>(below(random, 40)) - 1);
            }
        } catch (const Error& error) {
            EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
        }
    }
}

/// True when the model was taken and at least one plan computed.
bool survives(const std::string& path, Random& random) {
    bool computed = false;
    try {
        const auto model =
            open_model(path, {.use_mmap = one_in(random, 2), .repack = !one_in(random, 3)});
        for (int i = 0; i < 2; ++i) {
            const std::string spec = i == 0 ? "" : random_spec(random, model->hparams().n_layer);
            const ContextSettings settings = random_context(random);
            name_case(fmt::format("{} | {} | {}", trying().substr(0, trying().find(" | ")), spec,
                                  describe(settings)));
            try {
                LayerPlan plan = LayerPlan::resolve(parse_spec(spec), model->shape());
                Context context(model, std::move(plan), settings);
                compute(context, random);
                computed = true;
            } catch (const Error& error) {
                EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
            }
        }
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr(path + ": "));
        EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
        if (std::getenv("PLEAT_SEEDS") != nullptr) {
            std::fprintf(stderr, "    %s\n", error.what() + path.size() + 2);
        }
    }
    return computed;
}

template <typename T>
T bad_integer(Random& random, int64_t old) {
    constexpr std::array<int64_t, 16> numbers{
        0,          1,  2,         3,         5,   7, 64, 255, 65536, INT32_MAX, int64_t{1} << 30,
        UINT32_MAX, -1, INT32_MIN, INT64_MAX, 4096};
    switch (random() % 5) {
        case 0:
            return static_cast<T>(old + 1);
        case 1:
            return static_cast<T>(old - 1);
        case 2:
            return static_cast<T>(one_in(random, 2) ? old * 2 : old / 2);
        default:
            return static_cast<T>(pick(random, numbers));
    }
}

float bad_float(Random& random) {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    constexpr std::array<float, 14> numbers{0.0F,       -0.0F,
                                            1.0F,       -1.0F,
                                            infinity,   -infinity,
                                            1e-45F,     1e38F,
                                            1e-38F,     0.5F,
                                            10000.0F,   -1e38F,
                                            4.5399e-5F, std::numeric_limits<float>::quiet_NaN()};
    return pick(random, numbers);
}

gguf::Value other_type(Random& random) {
    const size_t n = below(random, 9);
    switch (random() % 9) {
        case 0:
            return bad_integer<int32_t>(random, 1);
        case 1:
            return bad_integer<uint64_t>(random, 1);
        case 2:
            return bad_float(random);
        case 3:
            return std::string("none");
        case 4:
            return one_in(random, 2);
        case 5:
            return gguf::Array{.type = gguf::ValueType::u32,
                               .items = std::vector<uint32_t>(n, bad_integer<uint32_t>(random, 4))};
        case 6:
            return gguf::Array{.type = gguf::ValueType::boolean,
                               .items = std::vector<uint8_t>(n, static_cast<uint8_t>(n % 2))};
        case 7:
            return gguf::Array{.type = gguf::ValueType::i32,
                               .items = std::vector<int32_t>(n, bad_integer<int32_t>(random, 4))};
        default:
            return gguf::Array{.type = gguf::ValueType::f32,
                               .items = std::vector<float>(n, bad_float(random))};
    }
}

/// The value, or one entry of it, as another of its type.
void spoil(gguf::Value& value, Random& random) {
    const auto spoiled = [&](auto old) {
        using T = decltype(old);
        if constexpr (std::is_same_v<T, bool>) {
            return !old;
        } else if constexpr (std::is_integral_v<T>) {
            return bad_integer<T>(random, static_cast<int64_t>(old));
        } else {
            return static_cast<T>(bad_float(random));
        }
    };
    std::visit(
        [&](auto& v) {
            using T = std::decay_t<decltype(v)>;
            if constexpr (std::is_same_v<T, std::string>) {
                constexpr std::array<const char*, 5> texts{"", "yarn", "longrope", "none", "\xff"};
                v = pick(random, texts);
            } else if constexpr (std::is_same_v<T, gguf::Array>) {
                std::visit(
                    [&](auto& items) {
                        using Item = typename std::decay_t<decltype(items)>::value_type;
                        if constexpr (std::is_arithmetic_v<Item>) {
                            if (items.empty()) return;
                            const size_t at = below(random, items.size());
                            if (one_in(random, 3)) {
                                items.resize(at);
                            } else if (v.type == gguf::ValueType::boolean) {
                                items[at] = static_cast<Item>(items[at] == 0);
                            } else {
                                items[at] = spoiled(items[at]);
                            }
                        }
                    },
                    v.items);
            } else {
                v = spoiled(v);
            }
        },
        value);
}

constexpr std::array<const char*, 26> known_keys{"attention.head_count",
                                                 "attention.head_count_kv",
                                                 "attention.key_length",
                                                 "attention.value_length",
                                                 "attention.key_length_swa",
                                                 "attention.value_length_swa",
                                                 "attention.sliding_window",
                                                 "attention.sliding_window_pattern",
                                                 "attention.shared_kv_layers",
                                                 "attention.recurrent_layers",
                                                 "embedding_length_per_layer_input",
                                                 "expert_count",
                                                 "expert_used_count",
                                                 "expert_feed_forward_length",
                                                 "expert_shared_feed_forward_length",
                                                 "final_logit_softcapping",
                                                 "full_attention_interval",
                                                 "nextn_predict_layers",
                                                 "rope.dimension_count",
                                                 "rope.dimension_count_swa",
                                                 "rope.dimension_sections",
                                                 "rope.freq_base",
                                                 "rope.freq_base_swa",
                                                 "rope.scaling.factor",
                                                 "rope.scaling.type",
                                                 "rope.scaling.original_context_length"};

std::string damage_key(ModelParts& parts, const std::string& arch, Random& random) {
    if (one_in(random, 4)) {
        const std::string key = arch + "." + pick(random, known_keys);
        gguf::Value& value = parts.key(key);
        value = other_type(random);
        return "set " + key;
    }
    std::vector<gguf::KeyValue*> of_arch;
    for (gguf::KeyValue& kv : parts.metadata) {
        if (kv.key.starts_with(arch + ".")) of_arch.push_back(&kv);
    }
    gguf::KeyValue& kv = *of_arch[below(random, of_arch.size())];
    const std::string key = kv.key;
    switch (random() % 6) {
        case 0:
            parts.remove_key(key);
            return "remove " + key;
        case 1:
            kv.value = other_type(random);
            return "other type " + key;
        default:
            spoil(kv.value, random);
            return "spoil " + key;
    }
}

ggml_type random_type(Random& random) {
    for (;;) {
        const auto type = static_cast<ggml_type>(below(random, GGML_TYPE_COUNT));
        if (ggml_blck_size(type) > 0 && ggml_type_size(type) > 0) return type;
    }
}

std::string damage_tensor(ModelParts& parts, Random& random) {
    ModelParts::Tensor& t = parts.tensors[below(random, parts.tensors.size())];
    const std::string name = t.name;
    switch (random() % 8) {
        case 0:
            parts.remove_tensor(name);
            return "remove " + name;
        case 1:
            std::reverse(t.ne.begin(), t.ne.end());
            parts.reshape(name, t.ne);
            return "turn " + name;
        case 2: {
            std::vector<int64_t> ne = t.ne;
            int64_t& n = ne[below(random, ne.size())];
            n = std::max<int64_t>(1, one_in(random, 2) ? n + 1 : n / 2);
            parts.reshape(name, ne);
            return "reshape " + name;
        }
        case 3: {
            std::vector<int64_t> ne = t.ne;
            if (one_in(random, 2) && ne.size() < 4) {
                ne.push_back(1 + static_cast<int64_t>(below(random, 2)));
            } else {
                ne.pop_back();
                if (ne.empty()) ne = {1};
            }
            parts.reshape(name, ne);
            return "dimensions of " + name;
        }
        case 4: {  // whatever the bits are, they are numbers or no numbers
            for (std::byte& b : t.data) b = static_cast<std::byte>(random());
            return "noise in " + name;
        }
        case 5: {
            std::vector<float> values(t.data.size() / 4, std::nanf(""));
            std::memcpy(t.data.data(), values.data(), values.size() * 4);
            return "nan in " + name;
        }
        default: {
            const ggml_type type = random_type(random);
            if (t.ne[0] % ggml_blck_size(type) != 0) return "nothing";
            parts.reshape(name, t.ne, type);
            for (std::byte& b : t.data) b = static_cast<std::byte>(random());
            return fmt::format("{} in {}", ggml_type_name(type), name);
        }
    }
}

TEST(DamagedModel, IsAnErrorOfOneLineOrComputes) {
    start_stock();
    static std::vector<std::pair<std::string, ModelParts>> sound;
    for (const NamedModel& named : architecture_models()) {
        if (named.model.n_layer > 8) continue;
        sound.emplace_back(named.model.architecture, read_parts(make_model(named.model).path()));
    }
    const auto [first, count] = seeds({1, 150});
    uint32_t n_taken = 0;
    for (uint32_t seed = first; seed < first + count; ++seed) {
        Random random(seed);
        const auto& [arch, parts] = sound[below(random, sound.size())];
        ModelParts damaged = parts;
        std::string what = fmt::format("seed {} {}", seed, arch);
        for (size_t n = one_in(random, 5) ? 2 : 1; n > 0; --n) {
            what += ", " + (one_in(random, 2) ? damage_key(damaged, arch, random)
                                              : damage_tensor(damaged, random));
        }
        SCOPED_TRACE(what);
        name_case(what);
        const TempFile file(".gguf");
        write_parts(damaged, file.path());
        n_taken += survives(file.path(), random) ? 1 : 0;
    }
    if (count >= 100) {
        EXPECT_GT(n_taken, count / 20);
        EXPECT_LT(n_taken, count * 2 / 3);
    }
}

/// Sizes that nobody's model has, but that contradict nothing.
RandomModel odd_model(Random& random) {
    constexpr std::array<int, 12> head_dims{2, 4, 6, 10, 24, 32, 40, 64, 72, 80, 96, 128};
    const auto& all = architecture_models();
    RandomModel m = all[below(random, all.size())].model;
    m.n_layer = std::min(m.n_layer, 6);
    m.seed = static_cast<uint32_t>(random());
    m.n_head_kv = 1 + static_cast<int>(below(random, 3));
    m.n_head = m.n_head_kv * (1 + static_cast<int>(below(random, 3)));
    if (!m.n_head_kv_per_layer.empty()) m.n_head = 8;
    m.n_embd = m.n_head * 2 * (1 + static_cast<int>(below(random, 12)));
    if (one_in(random, 2)) m.n_embd = 32 * m.n_head;
    if (m.architecture != "llama" && m.architecture != "qwen2")
        m.head_dim = pick(random, head_dims);
    if (m.head_dim_swa != 0) m.head_dim_swa = pick(random, head_dims);
    if (m.n_rot != 0) m.n_rot = 2;
    if (m.n_ff_per_layer.empty()) m.n_ff = 1 + static_cast<int>(below(random, 100));
    if (m.n_expert > 0) {
        m.n_expert = 1 + static_cast<int>(below(random, 40));
        m.n_expert_used = 1 + static_cast<int>(below(random, static_cast<size_t>(m.n_expert)));
        m.n_ff_exp = 1 + static_cast<int>(below(random, 70));
        if (m.n_ff_shexp != 0) m.n_ff_shexp = 1 + static_cast<int>(below(random, 70));
    }
    if (m.n_embd_per_layer > 0) m.n_embd_per_layer = 1 + static_cast<int>(below(random, 40));
    if (m.n_swa > 0) m.n_swa = 1 + static_cast<int>(below(random, 300));
    if (m.ssm_state_size > 0) {
        m.ssm_state_size = 1 + static_cast<int>(below(random, 40));
        m.ssm_n_group = 1 + static_cast<int>(below(random, 4));
        m.ssm_n_head = m.ssm_n_group * (1 + static_cast<int>(below(random, 3)));
        m.ssm_conv_kernel = 2 + static_cast<int>(below(random, 5));
    }
    m.n_vocab = 1 + static_cast<int>(below(random, 300));
    return m;
}

TEST(OddModel, IsAnErrorOfOneLineOrComputes) {
    start_stock();
    constexpr std::array types{GGML_TYPE_F32,  GGML_TYPE_F16,    GGML_TYPE_BF16, GGML_TYPE_Q8_0,
                               GGML_TYPE_Q4_0, GGML_TYPE_IQ4_NL, GGML_TYPE_Q4_K};
    const auto [first, count] = seeds({1, 60});
    uint32_t n_taken = 0;
    for (uint32_t seed = first; seed < first + count; ++seed) {
        Random random(seed);
        const RandomModel model = odd_model(random);
        const std::string what =
            fmt::format("seed {} {} {}", seed, model.architecture, describe(model));
        SCOPED_TRACE(what);
        name_case(what);
        const TempFile file(".gguf");
        try {
            write_model(file.path(), model, pick(random, types));
        } catch (const Error& error) {
            ADD_FAILURE() << error.what();
            continue;
        }
        n_taken += survives(file.path(), random) ? 1 : 0;
    }
    EXPECT_GT(n_taken, count / 3);
}

}  // namespace
}  // namespace pleat::test
