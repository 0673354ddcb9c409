// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/torch_causal_lm.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

std::string SourceDir() {
  const char* directory = std::getenv("OUTRIDER_SOURCE_DIR");
  return directory == nullptr ? "." : directory;
}

std::string DemoModel(const std::string& name) {
  return absl::StrCat(SourceDir(), "/models/", name);
}

SessionId Session(uint8_t number) {
  SessionId id;
  id.bytes[15] = number;
  return id;
}

std::unique_ptr<CausalLm> Load(TorchCausalLmOptions options) {
  auto model = LoadTorchCausalLm(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

absl::StatusOr<LogitRows> ExtendOne(CausalLm& model,
                                    const Extension& extension) {
  return model.Extend({extension})[0];
}

TokenId Argmax(absl::Span<const float> row) {
  return static_cast<TokenId>(std::max_element(row.begin(), row.end()) -
                              row.begin());
}

std::vector<TokenId> Greedy(CausalLm& model, std::vector<TokenId> tokens,
                            int num_new) {
  const SessionId session = Session(1);
  int cached = 0;
  std::vector<TokenId> text;
  for (int i = 0; i < num_new; ++i) {
    auto rows = ExtendOne(model, {session, cached, tokens, 1});
    EXPECT_TRUE(rows.ok()) << rows.status();
    cached += static_cast<int>(tokens.size());
    tokens = {Argmax(rows->Row(0))};
    text.push_back(tokens[0]);
  }
  return text;
}

TEST(TorchCausalLmTest, DemoTargetLoadsAndSaysWhatItIs) {
  auto model = Load({.model_directory = DemoModel("demo-target/")});
  EXPECT_EQ(model->info().name, "demo-target");
  EXPECT_EQ(model->info().vocab_size, 4096);
  EXPECT_EQ(model->info().context_length, 1024);
  EXPECT_EQ(model->info().device, "cpu");
  EXPECT_THAT(model->info().eos_ids, ElementsAre(1));
  EXPECT_THAT(model->info().weights_hash, SizeIs(64));
}

// "def main():\n    parser = argparse.ArgumentParser()\n    parser."
std::vector<TokenId> ParserPrompt() {
  return {0,    541, 2406, 736,  260, 1336, 280,  739, 2418,
          2033, 83,  3318, 2339, 396, 260,  1336, 15};
}

TEST(TorchCausalLmTest, DemoTargetContinuesSourceCodeGreedily) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    auto model =
        Load({.model_directory = DemoModel("demo-target"), .dtype = dtype});
    EXPECT_EQ(model->info().dtype, dtype);
    // "quit()\n    parser.add_argument('--foo', action='store_true', help='foo"
    EXPECT_THAT(
        Greedy(*model, ParserPrompt(), 20),
        ElementsAre(311, 387, 396, 260, 1336, 932, 2993, 364, 345, 670, 305,
                    2349, 678, 269, 1822, 1267, 338, 305, 1858, 678))
        << dtype;
  }
}

TEST(TorchCausalLmTest, DemoDraftContinuesSourceCodeGreedily) {
  auto model = Load({.model_directory = DemoModel("demo-draft")});
  // "simplefilter = None\n    parser."
  EXPECT_THAT(Greedy(*model, ParserPrompt(), 8),
              ElementsAre(2597, 3824, 280, 443, 200, 260, 1336, 15));
}

}  // namespace
}  // namespace outrider
