#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "support/pleat_tool.h"
#include "support/stock.h"
#include "support/temp_dir.h"

// `pleat bake` as a user meets it.
namespace pleat::test {
namespace {

const std::string model = PLEAT_MODELS_DIR "/pleat-demo-llama-16L-q4_0.gguf";

class BakeTool : public testing::Test {
  protected:
    TempDir dir_;
    std::string out_ = dir_.file("out.gguf");
};

TEST_F(BakeTool, WritesAFileThatStockLoadsAndSaysWhatItWrote) {
    const ToolRun run = run_pleat({"bake", model, out_, "--repeat-layers", "6,9"});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.err, "");
    EXPECT_EQ(run.out, out_ + ": 19 passes of 16 layers, " +
                           std::to_string(std::filesystem::file_size(out_)) +
                           " bytes (3.52 MiB)\n");
    const Stock stock(out_);
    EXPECT_EQ(llama_model_n_layer(stock.model()), 19);
}

TEST_F(BakeTool, SaysNothingWhenQuietAndTakesTheModelWithAFlagToo) {
    const ToolRun run = run_pleat({"bake", "-q", out_, "-m", model, "--skip-layers", "7"});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.out + run.err, "");
    EXPECT_EQ(llama_model_n_layer(Stock(out_).model()), 15);
}

TEST_F(BakeTool, NeedsForceToOverwrite) {
    dir_.file_with("out.gguf", "precious");
    const ToolRun refused = run_pleat({"bake", model, out_, "--skip-layers", "7"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_EQ(refused.out, "");
    EXPECT_EQ(refused.err, "pleat: " + out_ + ": exists; --force overwrites it\n");
    EXPECT_EQ(read_bytes(out_), "precious");
    EXPECT_EQ(run_pleat({"bake", model, out_, "--skip-layers", "7", "--force"}).status, 0);
    EXPECT_EQ(llama_model_n_layer(Stock(out_).model()), 15);
    EXPECT_EQ(run_pleat({"bake", model, model, "--force"}).status, 1);
    EXPECT_EQ(llama_model_n_layer(Stock(model).model()), 16);
}

TEST_F(BakeTool, WarnsOnStderrOfWorkThatStockWillNotSave) {
    const ToolRun run = run_pleat(
        {"bake", model, out_, "--drop-attention", "6..9", "--drop-ffn", "5", "--as", "deci"});
    EXPECT_EQ(run.status, 0);
    EXPECT_EQ(run.err,
              "warning: pass 5 (layer 5): the FFN is dropped by zeros, stock computes it all the "
              "same: deci has no layer of an attention alone\n");
    char name[16];
    llama_model_meta_val_str(Stock(out_).model(), "general.architecture", name, sizeof(name));
    EXPECT_STREQ(name, "deci");
}

TEST_F(BakeTool, NamesWhatIsMissing) {
    EXPECT_EQ(run_pleat({"bake", model}).err, "pleat: OUT.gguf, the file to write, is missing\n");
    EXPECT_EQ(run_pleat({"bake", model, out_, "--as", "gemma"}).status, 1);
}

}  // namespace
}  // namespace pleat::test
