#include "plan_file/fingerprint.h"

#include <string_view>

#include "base/error.h"

namespace pleat {
namespace {

void check_number(std::optional<int64_t> made_for, std::optional<int64_t> found,
                  const std::string& path, const char* what, const char* field) {
    if (!made_for || !found || *made_for == *found) return;
    fail("{}: made for {} {}, this model has {} (field model.{})", path, *made_for, what, *found,
         field);
}

bool differ(const std::string& made_for, const std::string& found) {
    return !made_for.empty() && !found.empty() && made_for != found;
}

/// Enough of a hash to see that two are not the same.
std::string_view start_of(std::string_view hash) { return hash.substr(0, 12); }

}  // namespace

bool Fingerprint::has_hashes() const {
    return !tokenizer_sha256.empty() || !tensor_types_sha256.empty() || !content_sha256.empty();
}

Fingerprint shape_fingerprint(const ModelShape& shape) {
    return {.architecture = shape.architecture,
            .n_layer = shape.n_layer,
            .n_layer_nextn = shape.n_layer_nextn,
            .n_embd = shape.n_embd,
            .n_vocab = shape.n_vocab,
            .name = shape.name};
}

std::vector<std::string> check_model(const Fingerprint& made_for, const Fingerprint& model,
                                     const std::string& path, ProfileCheck check) {
    if (made_for.architecture != model.architecture) {
        fail("{}: made for the architecture {}, this model is {} (field model.architecture)", path,
             made_for.architecture, model.architecture);
    }
    check_number(made_for.n_layer, model.n_layer, path, "layers", "n_layer");
    check_number(made_for.n_embd, model.n_embd, path, "values per hidden state", "n_embd");
    check_number(made_for.n_vocab, model.n_vocab, path, "tokens in the vocabulary", "n_vocab");
    if (differ(made_for.tokenizer_sha256, model.tokenizer_sha256)) {
        fail("{}: made for the tokenizer {}, this model has {} (field model.tokenizer_sha256)",
             path, start_of(made_for.tokenizer_sha256), start_of(model.tokenizer_sha256));
    }

    std::vector<std::string> warnings;
    if (made_for.n_layer_nextn && model.n_layer_nextn &&
        *made_for.n_layer_nextn != *model.n_layer_nextn) {
        warnings.push_back(
            fmt::format("{}: made for {} MTP layers, this model has {} (field model.n_layer_nextn)",
                        path, *made_for.n_layer_nextn, *model.n_layer_nextn));
    }
    if (differ(made_for.tensor_types_sha256, model.tensor_types_sha256)) {
        warnings.push_back(
            fmt::format("{}: made for the tensor types {} ({}), this model has {} ({}) (field "
                        "model.tensor_types_sha256)",
                        path, made_for.tensor_types, start_of(made_for.tensor_types_sha256),
                        model.tensor_types, start_of(model.tensor_types_sha256)));
    } else if (differ(made_for.content_sha256, model.content_sha256)) {
        // With other types the bytes differ anyway, which says nothing about a fine-tune.
        const auto named = [](const Fingerprint& it) {
            return fmt::format("{}{}{}", it.name, it.name.empty() ? "" : ", ",
                               start_of(it.content_sha256));
        };
        warnings.push_back(
            fmt::format("{}: made for other weights of this shape ({}), this model has {} (field "
                        "model.content_sha256)",
                        path, named(made_for), named(model)));
    }
    if (check == ProfileCheck::strict && !warnings.empty()) {
        fail("{}; --strict-profile takes no other model", warnings.front());
    }
    return warnings;
}

}  // namespace pleat
