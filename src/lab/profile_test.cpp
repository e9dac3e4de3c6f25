#include "lab/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "arch/registry.h"
#include "lab/fingerprint.h"
#include "plan_file/plan_file.h"
#include "support/temp_file.h"

namespace pleat {
namespace {

using nlohmann::json;
using test::TempFile;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::SizeIs;

const std::string demo_model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";

Fingerprint fingerprint_of_file(const std::string& path) {
    const auto model = open_model(path);
    return fingerprint_of(model->file(), model->shape());
}

Profile found() {
    return {
        .plan = "layers:0..7,6..15",
        .model = {.architecture = "llama",
                  .n_layer = 16,
                  .n_layer_nextn = 0,
                  .n_embd = 64,
                  .n_vocab = 512,
                  .tokenizer_sha256 = std::string(64, 'a'),
                  .tensor_types = "f32:33",
                  .tensor_types_sha256 = std::string(64, 'b'),
                  .content_sha256 = std::string(64, 'c'),
                  .file_type = "all F32",
                  .name = "tiny"},
        .measures = {{.measure = {.name = "nll"},
                      .data = "text.txt",
                      .n_selection = 10,
                      .n_validation = 5,
                      .selection = Score{.value = 0.9, .error = 0.1},
                      .validation = Score{.value = 0.91, .error = 0.2},
                      .identity_selection = Score{.value = 1.0, .error = 0.1},
                      .selection_difference = Difference{.value = -0.1, .low = -0.2, .high = -0.05},
                      .survives = true}},
        .data = {{.name = "text.txt", .sha256 = std::string(64, 'd'), .n_items = 15}},
        .n_plans_tried = 137,
        .curve = {{.plan = "drop:3",
                   .dropped = {3},
                   .loss = std::numeric_limits<double>::infinity(),
                   .kv_bytes = 1024,
                   .predicted_tokens_per_s = 12.5}},
        .similarity = {{.attention = 0.5, .ffn = 0.25}},
        .settings = {{"n_ctx", "512"}},
        .provenance = Provenance{.command = "pleat scan tiny.gguf",
                                 .date = "2025-01-31T12:00:00Z",
                                 .machine = {.cpu = "some CPU", .threads = 2},
                                 .versions = {.pleat = "1", .ggml = "2", .libllama = "3"}},
        .notes = {"a note"}};
}

TEST(WrittenProfile, IsReadBackWithItsPlanAndModel) {
    const Profile profile = found();
    const PlanFile file = parse_plan_file(profile_json(profile), "p.json");
    EXPECT_EQ(file.spec, parse_spec(profile.plan));
    EXPECT_EQ(file.model, profile.model);
}

TEST(WrittenProfile, SaysWhatWasMeasuredAndHow) {
    const json it = json::parse(profile_json(found()));
    EXPECT_EQ(it["pleat_profile"], 1);
    EXPECT_EQ(it["measures"][0],
              json::parse(R"({"name": "nll", "higher_is_better": false, "data": "text.txt",
                  "selection": {"n_items": 10, "plan": {"value": 0.9, "error": 0.1},
                                "identity": {"value": 1.0, "error": 0.1},
                                "difference": {"value": -0.1, "low": -0.2, "high": -0.05}},
                  "validation": {"n_items": 5, "plan": {"value": 0.91, "error": 0.2}},
                  "survives": true})"));
    EXPECT_EQ(it["curve"][0], json::parse(R"({"plan": "drop:3", "dropped": [3], "kv_bytes": 1024,
                                              "predicted_tokens_per_s": 12.5})"))
        << "an infinite loss cannot be said";
    EXPECT_EQ(it["similarity"], json::parse(R"([{"attention": 0.5, "ffn": 0.25}])"));
    EXPECT_EQ(it["provenance"]["machine"], json::parse(R"({"cpu": "some CPU", "threads": 2})"));
    EXPECT_EQ(it["n_plans_tried"], 137);
}

TEST(WrittenProfile, HasOnlyFieldsOfThePublishedSchema) {
    const json schema = json::parse(read_bytes(PLEAT_MODELS_DIR "/../docs/profile.schema.json"));
    const json profile = json::parse(profile_json(found()));
    const std::function<void(const json&, json, const std::string&)> check =
        [&](const json& value, json rule, const std::string& where) {
            if (rule.contains("$ref")) {
                rule = schema.at(json::json_pointer(rule["$ref"].get<std::string>().substr(1)));
            }
            if (value.is_array()) {
                for (const json& item : value) check(item, rule.at("items"), where + "[]");
            }
            if (!value.is_object()) return;
            for (const auto& [key, field] : value.items()) {
                const json properties = rule.value("properties", json::object());
                if (properties.contains(key)) {
                    check(field, properties.at(key), where + "." + key);
                } else {
                    EXPECT_TRUE(rule.contains("additionalProperties") &&
                                rule["additionalProperties"].is_object())
                        << where << "." << key;
                }
            }
            for (const json& key : rule.value("required", json::array())) {
                EXPECT_TRUE(value.contains(key)) << where << " lacks " << key;
            }
        };
    check(profile, schema, "profile");
}

TEST(WrittenProfile, GoesToDiskAsAWhole) {
    const TempFile file(".json");
    write_profile(file.path(), found());
    EXPECT_EQ(read_bytes(file.path()), profile_json(found()));
    EXPECT_EQ(read_plan_file(file.path()).model, found().model);
}

TEST(Provenance, QuotesTheCommandForAShell) {
    const Provenance here =
        provenance_here({"pleat", "run", "a b.gguf", "--repeat-layers", "2,4;5,6", "it's", ""}, 3);
    EXPECT_EQ(here.command, "pleat run 'a b.gguf' --repeat-layers '2,4;5,6' 'it'\\''s' ''");
    EXPECT_THAT(here.date, MatchesRegex("20[0-9-]{8}T[0-9:]{8}Z"));
    EXPECT_EQ(here.machine.threads, 3);
    EXPECT_FALSE(here.versions.ggml.empty());
    EXPECT_FALSE(here.versions.libllama.empty());
}

TEST(DataSource, HasTheHashThatSha256sumPrints) {
    const TempFile file(".txt", "abc");
    EXPECT_EQ(data_source(file.path(), 4).sha256,
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST(Fingerprint, TellsADemoModelByItsParts) {
    const Fingerprint it = fingerprint_of_file(demo_model);
    EXPECT_EQ(it.architecture, "llama");
    EXPECT_EQ(it.n_layer, 16);
    EXPECT_THAT(it.tokenizer_sha256, SizeIs(64));
    EXPECT_THAT(it.tensor_types, MatchesRegex("f32:[0-9]+ .*q4_0:[0-9]+.*"));
    EXPECT_EQ(it.file_type, "Q4_0");
    EXPECT_EQ(it, fingerprint_of_file(demo_model));
}

/// The demo model with some bytes of the file exchanged.
std::string with_bytes(const std::string& from, const std::string& to) {
    std::string bytes = read_bytes(demo_model);
    const size_t at = bytes.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return bytes.replace(at, to.size(), to);
}

TEST(Fingerprint, IsNotOfTheNameButOfWhatIsComputed) {
    const Fingerprint plain = fingerprint_of_file(demo_model);
    const auto model = open_model(demo_model);
    std::string bytes = read_bytes(demo_model);
    for (const gguf::TensorInfo& tensor : model->file().tensors()) {  // a fine-tune moves them all
        bytes[tensor.offset + tensor.bytes / 2] ^= 1;
    }
    const TempFile tuned(".gguf", bytes);
    const Fingerprint other = fingerprint_of_file(tuned.path());
    EXPECT_NE(other.content_sha256, plain.content_sha256);
    EXPECT_EQ(other.tokenizer_sha256, plain.tokenizer_sha256);
    EXPECT_EQ(other.tensor_types_sha256, plain.tensor_types_sha256);
    EXPECT_THAT(check_model(plain, other, "p"), SizeIs(1));

    const TempFile renamed(".gguf", with_bytes(plain.name, std::string(plain.name.size(), 'x')));
    EXPECT_THAT(check_model(plain, fingerprint_of_file(renamed.path()), "p", ProfileCheck::strict),
                IsEmpty());
}

}  // namespace
}  // namespace pleat
