#include "bake/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "base/error.h"

namespace pleat {
namespace {

constexpr std::string_view head_count = "attention.head_count";
constexpr std::string_view head_count_kv = "attention.head_count_kv";
constexpr std::string_view key_length = "attention.key_length";
constexpr std::string_view value_length = "attention.value_length";
constexpr std::string_view feed_forward_length = "feed_forward_length";
constexpr std::array<std::string_view, 3> split_keys{"split.no", "split.count",
                                                     "split.tensors.count"};

template <typename T>
constexpr bool is_integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// The number in the type that the value has; in stock's own where that cannot hold it.
gguf::Value same_type(const gguf::Value& value, uint32_t number) {
    return std::visit(
        [&](const auto& old) -> gguf::Value {
            using T = std::decay_t<decltype(old)>;
            if constexpr (is_integer<T>) {
                if (std::in_range<T>(number)) return static_cast<T>(number);
            }
            return number;
        },
        value);
}

class Writer {
  public:
    Writer(const Model& model, const LayerPlan& plan, const std::vector<PassForm>& forms,
           const std::string& architecture)
        : model_(model),
          plan_(plan),
          forms_(forms),
          old_prefix_(fmt::format("{}.", model.architecture().name)),
          new_prefix_(architecture + "."),
          architecture_(architecture) {}

    std::vector<gguf::KeyValue> write() {
        const auto baked = model_.architecture().baked_keys;
        if (baked != nullptr) index_keys_ = baked(model_.hparams(), plan_);
        for (const gguf::KeyValue& entry : model_.file().metadata()) {
            if (entry.key == plan_key ||
                std::ranges::find(split_keys, entry.key) != split_keys.end()) {
                continue;
            }
            if (entry.key == "general.architecture") {
                out_.push_back({entry.key, architecture_});
            } else if (entry.key.starts_with(old_prefix_)) {
                const std::string key = entry.key.substr(old_prefix_.size());
                out_.push_back({new_prefix_ + key, of_architecture(key, entry.value)});
            } else {
                out_.push_back(entry);
            }
        }
        add_head_sizes();
        for (const gguf::KeyValue& entry : index_keys_) {
            if (model_.file().find(old_prefix_ + entry.key) != nullptr) continue;
            out_.push_back({new_prefix_ + entry.key, entry.value});
        }
        // Stock takes the head count for an absent head_count_kv, zeros and all.
        out_.push_back({std::string(plan_key), plan_.canonical()});
        return std::move(out_);
    }

  private:
    gguf::Value of_architecture(std::string_view key, const gguf::Value& value) const {
        if (key == "block_count") return same_type(value, static_cast<uint32_t>(plan_.size()));
        if (key == "nextn_predict_layers") return same_type(value, 0);
        const auto replaced =
            std::ranges::find(index_keys_, key, [](const gguf::KeyValue& kv) { return kv.key; });
        if (replaced != index_keys_.end()) return replaced->value;
        const auto& keys = model_.architecture().per_layer_keys;
        const bool per_layer = std::ranges::find(keys, key) != keys.end();
        if (!per_layer) return value;
        const auto* const array = std::get_if<gguf::Array>(&value);
        if (array != nullptr) return zeroed(key, along_path(key, *array));
        return leaves_out(key) ? zeroed(key, repeated(value)) : value;
    }

    gguf::Array along_path(std::string_view key, const gguf::Array& array) const {
        const size_t n_block = model_.hparams().n_layer + model_.hparams().n_layer_nextn;
        if (array.size() != n_block) {
            fail("{}: key {}{} has {} entries, expected {}, one per block", model_.file().path(),
                 old_prefix_, key, array.size(), n_block);
        }
        gguf::Array result{.type = array.type, .items = {}};
        std::visit(
            [&](const auto& items) {
                std::decay_t<decltype(items)> picked;
                for (const Pass& pass : plan_) {
                    picked.push_back(items[static_cast<size_t>(pass.layer)]);
                }
                result.items = std::move(picked);
            },
            array.items);
        return result;
    }

    /// A number for all layers as an array of its type.
    gguf::Array repeated(const gguf::Value& value) const {
        gguf::Array result{.type = gguf::type_of(value), .items = {}};
        std::visit(
            [&](const auto& number) {
                using T = std::decay_t<decltype(number)>;
                if constexpr (is_integer<T>) {
                    result.items = std::vector<T>(plan_.size(), number);
                }
            },
            value);
        return result;
    }

    bool zero_at(std::string_view key, const PassForm& form) const {
        if (key == head_count || key == head_count_kv) return form.without_attention;
        return key == feed_forward_length && form.without_ffn;
    }
    bool leaves_out(std::string_view key) const {
        return std::ranges::any_of(forms_, [&](const PassForm& f) { return zero_at(key, f); });
    }
    gguf::Array zeroed(std::string_view key, gguf::Array array) const {
        std::visit(
            [&](auto& items) {
                using T = typename std::decay_t<decltype(items)>::value_type;
                if constexpr (is_integer<T>) {
                    for (size_t i = 0; i < items.size(); ++i) {
                        if (zero_at(key, forms_[i])) items[i] = 0;
                    }
                }
            },
            array.items);
        return array;
    }

    /// Head sizes that nobody wrote follow from the first layer's head count.
    void add_head_sizes() {
        const Hparams& h = model_.hparams();
        const LayerHparams& first = h.layers[static_cast<size_t>(plan_[0].layer)];
        if (first.n_head == h.layers.front().n_head) return;
        const auto add = [&](std::string_view key, uint32_t size) {
            if (model_.file().find(old_prefix_ + std::string(key)) != nullptr) return;
            out_.push_back({new_prefix_ + std::string(key), size});
        };
        add(key_length, first.head_dim_k);
        add(value_length, first.head_dim_v);
    }

    const Model& model_;
    const LayerPlan& plan_;
    const std::vector<PassForm>& forms_;
    std::string old_prefix_;
    std::string new_prefix_;
    std::string architecture_;
    std::vector<gguf::KeyValue> index_keys_;  ///< what the architecture says pass by pass
    std::vector<gguf::KeyValue> out_;
};

}  // namespace

std::vector<gguf::KeyValue> baked_metadata(const Model& model, const LayerPlan& plan,
                                           const std::vector<PassForm>& forms,
                                           const std::string& architecture) {
    return Writer(model, plan, forms, architecture).write();
}

}  // namespace pleat
