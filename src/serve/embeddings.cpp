#include "serve/embeddings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "serve/prompt_field.h"

namespace pleat {
namespace {

using nlohmann::ordered_json;

ordered_json value_of(const std::vector<float>& row, bool base64) {
    if (!base64) return row;
    return base64_text(std::as_bytes(std::span(row)));
}

}  // namespace

EmbeddingRequest embedding_request(const Fields& fields, const RequestContext& context,
                                   uint32_t n_embd) {
    EmbeddingRequest request;
    request.variant = context.models.find(fields);
    const std::string_view name =
        fields.has("input") || !fields.has("content") ? "input" : "content";
    const ordered_json* const input = fields.find(name);
    if (input == nullptr) refuse_field(fields.param("input"), "is missing");
    request.prompts =
        prompt_field(*input, fields.param(name), context.prompts, context.gone, context.limits);
    request.normalize =
        static_cast<int>(fields.integer("embd_normalize", -1, 1000).value_or(request.normalize));
    const std::string format = fields.text("encoding_format").value_or("float");
    if (format != "float" && format != "base64") {
        refuse_field(fields.param("encoding_format"), "must be \"float\" or \"base64\"");
    }
    request.base64 = format == "base64";
    const auto dimensions = fields.integer("dimensions", 1, INT32_MAX);
    if (dimensions && *dimensions != int64_t{n_embd}) {
        refuse_field(
            fields.param("dimensions"),
            fmt::format("this model's embeddings have {}; others are not offered", n_embd));
    }
    return request;
}

std::vector<std::shared_ptr<Job>> embedding_jobs(const EmbeddingRequest& request, uint32_t n_ctx) {
    std::vector<std::shared_ptr<Job>> jobs;
    for (const std::vector<int32_t>& prompt : request.prompts) {
        if (prompt.size() > n_ctx) {
            throw RequestError(400,
                               fmt::format("the input has {} tokens, and the context holds {}",
                                           prompt.size(), n_ctx),
                               "input", "exceed_context_size_error",
                               {{"n_prompt_tokens", prompt.size()}, {"n_ctx", n_ctx}});
        }
        jobs.push_back(std::make_shared<Job>(JobRequest{
            .kind = JobRequest::Kind::embedding, .variant = request.variant, .prompt = prompt}));
    }
    return jobs;
}

std::vector<float> normalized(std::span<const float> values, int norm) {
    double sum = 0.0;
    if (norm < 0) {
        sum = 1.0;
    } else if (norm == 0) {
        for (const float v : values) sum = std::max(sum, std::abs(double{v}));
        sum /= 32760.0;  // the greatest becomes this: for 16-bit integers
    } else if (norm == 2) {
        for (const float v : values) sum += double{v} * double{v};
        sum = std::sqrt(sum);
    } else {
        for (const float v : values) sum += std::pow(std::abs(double{v}), norm);
        sum = std::pow(sum, 1.0 / norm);
    }
    const float factor = sum > 0.0 ? static_cast<float>(1.0 / sum) : 0.0F;
    std::vector<float> result(values.begin(), values.end());
    for (float& v : result) v *= factor;
    return result;
}

ordered_json openai_embeddings_json(const EmbeddingRequest& request,
                                    const std::vector<JobResult>& results,
                                    const std::string& model) {
    size_t n_tokens = 0;
    ordered_json data = ordered_json::array();
    for (const JobResult& result : results) {
        n_tokens += result.timings.n_prompt;
        ordered_json entry = {
            {"embedding", value_of(normalized(result.embeddings.at(0), 2), request.base64)},
            {"index", data.size()},
            {"object", "embedding"}};
        if (request.base64) entry["encoding_format"] = "base64";
        data.push_back(std::move(entry));
    }
    return {{"model", model},
            {"object", "list"},
            {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}},
            {"data", std::move(data)}};
}

ordered_json embeddings_json(const EmbeddingRequest& request, const std::vector<JobResult>& results,
                             bool pooled) {
    ordered_json list = ordered_json::array();
    for (const JobResult& result : results) {
        ordered_json rows = ordered_json::array();
        for (const std::vector<float>& row : result.embeddings) {
            rows.push_back(
                value_of(pooled ? normalized(row, request.normalize) : row, request.base64));
        }
        list.push_back({{"index", list.size()}, {"embedding", std::move(rows)}});
    }
    return list;
}

std::string base64_text(std::span<const std::byte> bytes) {
    constexpr std::string_view digits =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (size_t i = 0; i < bytes.size(); i += 3) {
        const size_t n = std::min<size_t>(3, bytes.size() - i);
        uint32_t group = 0;
        for (size_t j = 0; j < 3; ++j) {
            group = group << 8U | (j < n ? std::to_integer<uint32_t>(bytes[i + j]) : 0U);
        }
        for (size_t j = 0; j < 4; ++j) {
            text += j <= n ? digits[group >> (18 - 6 * j) & 63U] : '=';
        }
    }
    return text;
}

}  // namespace pleat
