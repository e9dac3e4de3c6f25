#include "support/random_model.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <deque>
#include <functional>
#include <numeric>
#include <random>
#include <span>
#include <tuple>

#include "base/error.h"
#include "gguf/writer.h"
#include "support/random_vocab.h"
#include "support/stock.h"

namespace pleat::test {
namespace {

struct Tensor {
    std::string name;
    std::vector<int64_t> ne;  ///< fastest first
    float mean = 0;
    float deviation = 1;
    bool quantised = false;
    /// Factors below or about 0 would not be those of a model, so these are drawn evenly between
    /// mean - deviation and mean + deviation.
    bool even = false;

    size_t count() const {
        return static_cast<size_t>(
            std::accumulate(ne.begin(), ne.end(), int64_t{1}, std::multiplies<>()));
    }
};

/// FNV-1a.
uint32_t hash(std::string_view text) {
    uint32_t value = 2166136261U;
    for (const char c : text) value = (value ^ static_cast<unsigned char>(c)) * 16777619U;
    return value;
}

/// The standard fixes mt19937's numbers; its distributions and the C library's logarithm differ
/// from system to system. A sum of four even 16-bit numbers is near enough to a normal one, and
/// exact.
std::vector<float> values(const Tensor& tensor, uint32_t seed) {
    std::mt19937 random(seed * 2654435761U ^ hash(tensor.name));
    std::vector<float> result(tensor.count());
    constexpr double sum_mean = 2 * 65535.0;
    constexpr double sum_deviation = 37837.227;  // sqrt(4 * (65536^2 - 1) / 12)
    for (float& value : result) {
        const uint32_t a = random();
        const uint32_t b = random();
        double unit = 0;
        if (tensor.even) {
            unit = static_cast<double>(a) / 2147483648.0 - 1.0;
        } else {
            const uint32_t sum = (a >> 16U) + (a & 0xFFFFU) + (b >> 16U) + (b & 0xFFFFU);
            unit = (static_cast<double>(sum) - sum_mean) / sum_deviation;
        }
        value = static_cast<float>(tensor.mean + tensor.deviation * unit);
    }
    return result;
}

/// The list of a model's tensors grows in the order of the file.
class TensorList {
  public:
    explicit TensorList(const RandomModel& model) : model_(model) {}

    void norm(const std::string& name) {
        tensors_.push_back({.name = name, .ne = {model_.n_embd}, .mean = 1, .deviation = 0.1F});
    }
    /// With deviation 1/sqrt(fan-in) rows of unit variance keep it.
    void matrix(const std::string& name, std::vector<int64_t> ne, double gain = 1) {
        const auto deviation =
            static_cast<float>(gain / std::sqrt(static_cast<double>(ne.front())));
        tensors_.push_back({.name = name + ".weight",
                            .ne = std::move(ne),
                            .deviation = deviation,
                            .quantised = true});
    }
    void factors(const std::string& name, int64_t count, float low, float high) {
        tensors_.push_back({.name = name,
                            .ne = {count},
                            .mean = (low + high) / 2,
                            .deviation = (high - low) / 2,
                            .even = true});
    }
    /// A matrix of a layer, with the bias and scale that the model's settings give it.
    void projection(const std::string& name, int64_t in, int64_t out) {
        matrix(name, {in, out});
        if (model_.biases) {
            tensors_.push_back({.name = name + ".bias", .ne = {out}, .deviation = 0.1F});
        }
        if (model_.scales) factors(name + ".scale", 1, 0.5F, 1.5F);
    }
    void experts(const std::string& name, int64_t in, int64_t out) {
        matrix(name, {in, out, model_.n_expert});
        if (model_.scales) factors(name + ".scale", model_.n_expert, 0.5F, 1.5F);
    }
    void router(const std::string& name) {
        matrix(name, {model_.n_embd, model_.n_expert});
        tensors_.back().quantised = false;
    }

    std::vector<Tensor> take() { return std::move(tensors_); }

  private:
    const RandomModel& model_;
    std::vector<Tensor> tensors_;
};

void list_layer(TensorList& list, const RandomModel& model, const std::string& prefix) {
    const int64_t n_embd = model.n_embd;
    const int64_t n_q = int64_t{model.n_head} * model.head_size();
    const int64_t n_kv = int64_t{model.n_head_kv} * model.head_size();
    list.norm(prefix + "attn_norm.weight");
    if (model.fused_qkv) {
        list.projection(prefix + "attn_qkv", n_embd, n_q + 2 * n_kv);
    } else {
        list.projection(prefix + "attn_q", n_embd, n_q);
        list.projection(prefix + "attn_k", n_embd, n_kv);
        list.projection(prefix + "attn_v", n_embd, n_kv);
    }
    list.projection(prefix + "attn_output", n_q, n_embd);
    list.norm(prefix + "ffn_norm.weight");
    if (model.n_expert > 0) {
        list.router(prefix + "ffn_gate_inp");
        list.experts(prefix + "ffn_gate_exps", n_embd, model.n_ff);
        list.experts(prefix + "ffn_up_exps", n_embd, model.n_ff);
        list.experts(prefix + "ffn_down_exps", model.n_ff, n_embd);
    } else {
        list.projection(prefix + "ffn_gate", n_embd, model.n_ff);
        list.projection(prefix + "ffn_up", n_embd, model.n_ff);
        list.projection(prefix + "ffn_down", model.n_ff, n_embd);
    }
}

std::vector<Tensor> list_tensors(const RandomModel& model) {
    TensorList list(model);
    // The head sees rows of unit variance, so its gain is the spread of the logits.
    constexpr double logit_spread = 2;
    const std::vector<int64_t> vocab_shape{model.n_embd, model.n_vocab};
    const double unit_embedding = std::sqrt(static_cast<double>(model.n_embd));
    list.matrix("token_embd", vocab_shape, model.tied ? logit_spread : unit_embedding);
    const int64_t n_factors = model.head_size() / 2;
    if (model.rope_freqs) list.factors("rope_freqs.weight", n_factors, 1, 8);
    if (model.rope_scaling == "longrope") {
        list.factors("rope_factors_long.weight", n_factors, 1, 2 * model.rope_factor);
        list.factors("rope_factors_short.weight", n_factors, 1, 1.5F);
    }
    for (int i = 0; i < model.n_layer; ++i) list_layer(list, model, fmt::format("blk.{}.", i));
    list.norm("output_norm.weight");
    if (!model.tied) list.matrix("output", vocab_shape, logit_spread);
    return list.take();
}

std::vector<gguf::KeyValue> list_metadata(const RandomModel& model) {
    std::vector<gguf::KeyValue> list;
    const auto text = [&](const char* key, const std::string& value) {
        list.push_back({key, value});
    };
    const auto number = [&](const char* key, int value) {
        list.push_back({key, static_cast<uint32_t>(value)});
    };
    const auto real = [&](const char* key, float value) { list.push_back({key, value}); };
    text("general.architecture", "llama");
    text("general.name", fmt::format("random {}", describe(model)));
    if (model.alignment != 32) list.push_back({"general.alignment", model.alignment});
    number("llama.vocab_size", model.n_vocab);
    number("llama.context_length", model.n_ctx_train);
    number("llama.embedding_length", model.n_embd);
    number("llama.block_count", model.n_layer);
    number("llama.feed_forward_length", model.n_ff);
    number("llama.attention.head_count", model.n_head);
    number("llama.attention.head_count_kv", model.n_head_kv);
    real("llama.attention.layer_norm_rms_epsilon", 1e-5F);
    if (model.head_dim != 0) {
        number("llama.attention.key_length", model.head_dim);
        number("llama.attention.value_length", model.head_dim);
    }
    number("llama.rope.dimension_count", model.head_size());
    real("llama.rope.freq_base", model.rope_freq_base);
    if (!model.rope_scaling.empty()) {
        text("llama.rope.scaling.type", model.rope_scaling);
        real("llama.rope.scaling.factor", model.rope_factor);
        number("llama.rope.scaling.original_context_length", model.rope_orig_ctx);
    }
    if (model.n_expert > 0) {
        number("llama.expert_count", model.n_expert);
        number("llama.expert_used_count", model.n_expert_used);
    }
    if (model.tokenizer) {
        for (gguf::KeyValue& entry : random_vocab(model.n_vocab)) list.push_back(std::move(entry));
    } else {
        text("tokenizer.ggml.model", "none");
    }
    list.insert(list.end(), model.metadata.begin(), model.metadata.end());
    return list;
}

ggml_type type_of(const RandomModel& model, const Tensor& tensor, ggml_type type) {
    if (!tensor.quantised) return GGML_TYPE_F32;
    for (const auto& [part, own_type] : model.types) {
        if (tensor.name.find(part) != std::string::npos) {
            type = own_type;
            break;
        }
    }
    return tensor.ne.front() % ggml_blck_size(type) == 0 ? type : GGML_TYPE_F16;
}

std::vector<std::byte> encode(const Tensor& tensor, ggml_type type,
                              const std::vector<float>& source) {
    const int64_t n_per_row = tensor.ne.front();
    const auto n_rows = static_cast<int64_t>(source.size()) / n_per_row;
    std::vector<std::byte> data(ggml_row_size(type, n_per_row) * static_cast<size_t>(n_rows));
    // Types that must know which columns matter are told that all do.
    const std::vector<float> importance(static_cast<size_t>(n_per_row), 1.0F);
    const size_t written =
        ggml_quantize_chunk(type, source.data(), data.data(), 0, n_rows, n_per_row,
                            ggml_quantize_requires_imatrix(type) ? importance.data() : nullptr);
    if (written != data.size()) {
        fail("{}: {} bytes of {} came out, expected {}", tensor.name, written, ggml_type_name(type),
             data.size());
    }
    return data;
}

void check(const RandomModel& model) {
    if (model.n_head % model.n_head_kv != 0 || model.head_size() % 2 != 0 ||
        (model.head_dim == 0 && model.n_embd % model.n_head != 0)) {
        fail("{} heads over {} of size {} in {} are no model", model.n_head, model.n_head_kv,
             model.head_size(), model.n_embd);
    }
    if (model.n_expert_used > model.n_expert || (model.n_expert > 0 && model.n_expert_used < 1)) {
        fail("{} of {} experts cannot be used", model.n_expert_used, model.n_expert);
    }
}

void quantise(const std::string& from, const std::string& to, llama_ftype mix) {
    start_stock();
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.ftype = mix;
    params.nthread = 1;
    if (llama_model_quantize(from.c_str(), to.c_str(), &params) != 0) {
        fail("stock's quantiser fails for {}; its log:\n{}", llama_ftype_name(mix), stock_log());
    }
}

template <typename Type>
const TempFile& cached(const RandomModel& model, Type type,
                       const std::function<void(const std::string& path)>& make) {
    struct Entry {
        RandomModel model;
        Type type;
        TempFile file;
    };
    // Constructed before the files, so that it goes after them.
    process_temp_dir();
    static std::deque<Entry> entries;  // references to its elements stay good
    for (const Entry& entry : entries) {
        if (entry.type == type && entry.model == model) return entry.file;
    }
    TempFile file(".gguf");
    make(file.path());
    return entries.emplace_back(Entry{model, type, std::move(file)}).file;
}

}  // namespace

void write_model(const std::string& path, const RandomModel& model, ggml_type type) {
    check(model);
    std::vector<gguf::TensorToWrite> out;
    for (const Tensor& tensor : list_tensors(model)) {
        const ggml_type stored = type_of(model, tensor, type);
        out.push_back({.name = tensor.name,
                       .type = stored,
                       .ne = tensor.ne,
                       .write = [=, seed = model.seed](const auto& sink) {
                           sink(encode(tensor, stored, values(tensor, seed)));
                       }});
    }
    gguf::write(path, list_metadata(model), out);
}

const TempFile& make_model(const RandomModel& model, ggml_type type) {
    return cached(model, type, [&](const std::string& path) { write_model(path, model, type); });
}

const TempFile& make_model(const RandomModel& model, llama_ftype mix) {
    return cached(model, mix, [&](const std::string& path) {
        quantise(make_model(model, GGML_TYPE_F32).path(), path, mix);
    });
}

std::string describe(const RandomModel& model) {
    std::string text = fmt::format("{}L {} {}/{} ff{} v{}", model.n_layer, model.n_embd,
                                   model.n_head, model.n_head_kv, model.n_ff, model.n_vocab);
    if (model.head_dim != 0) text += fmt::format(" d{}", model.head_dim);
    if (model.n_expert != 0) {
        text += fmt::format(" experts {}/{}", model.n_expert_used, model.n_expert);
    }
    const std::tuple<bool, const char*> marks[] = {
        {model.tied, "tied"},
        {model.biases, "biases"},
        {model.scales, "scales"},
        {model.fused_qkv, "fused_qkv"},
        {model.rope_freqs, "rope_freqs"},
        {model.tokenizer, "tokenizer"},
        {!model.types.empty(), "types"},
        {!model.metadata.empty(), "keys"},
    };
    for (const auto& [set, mark] : marks) {
        if (set) text += fmt::format(" {}", mark);
    }
    if (!model.rope_scaling.empty()) {
        text += fmt::format(" {} {}", model.rope_scaling, model.rope_factor);
    }
    if (model.alignment != 32) text += fmt::format(" alignment {}", model.alignment);
    return text + fmt::format(" seed {}", model.seed);
}

void PrintTo(const RandomModel& model, std::ostream* out) { *out << describe(model); }

}  // namespace pleat::test
