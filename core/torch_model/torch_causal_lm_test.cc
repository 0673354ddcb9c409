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

class SmallModelTest : public ::testing::Test {
 protected:
  static constexpr int kContextLength = 128;

  std::unique_ptr<CausalLm> LoadSmall(int64_t max_cached_tokens = 0) {
    return Load({.model_directory = absl::StrCat(
                     SourceDir(), "/tests/golden/testdata/models/llama"),
                 .max_cached_tokens = max_cached_tokens});
  }

  std::vector<float> LastRow(CausalLm& model, const Extension& extension) {
    auto rows = ExtendOne(model, extension);
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok()) return {};
    const auto row = rows->Row(rows->num_rows() - 1);
    return {row.begin(), row.end()};
  }

  const std::vector<TokenId> five_ = {3, 14, 15, 9, 26};
  const std::vector<TokenId> one_ = {5};
};

TEST_F(SmallModelTest, InvalidExtensionsAreRefusedAndChangeNothing) {
  auto model = LoadSmall();
  const SessionId session = Session(1);
  const std::vector<float> expected = [&] {
    auto fresh = LoadSmall();
    LastRow(*fresh, {session, 0, five_, 1});
    return LastRow(*fresh, {session, 5, one_, 1});
  }();
  LastRow(*model, {session, 0, five_, 1});

  const std::vector<TokenId> negative = {1, -1};
  const std::vector<TokenId> beyond = {1, model->info().vocab_size};
  const std::vector<TokenId> many(kContextLength - 4, 1);
  const std::vector<Extension> invalid = {
      {session, -1, one_, 1},   {session, 6, one_, 1},
      {session, 5, {}, 0},      {session, 5, one_, 2},
      {session, 5, one_, -1},   {session, 0, negative, 1},
      {session, 0, beyond, 1},  {session, 5, many, 1},
      {Session(2), 1, one_, 1},
  };
  for (const Extension& extension : invalid) {
    EXPECT_EQ(ExtendOne(*model, extension).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(LastRow(*model, {session, 5, one_, 1}), expected);
}

TEST_F(SmallModelTest, AnInvalidExtensionDoesNotDisturbTheRestOfItsBatch) {
  auto model = LoadSmall();
  const auto results = model->Extend({{Session(1), 0, five_, 2},
                                      {Session(2), 7, one_, 1},
                                      {Session(3), 0, one_, 0},
                                      {Session(1), 5, one_, 1}});
  ASSERT_EQ(results.size(), 4u);
  ASSERT_TRUE(results[0].ok());
  EXPECT_EQ(results[0]->num_rows(), 2);
  EXPECT_EQ(results[1].status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(results[2].ok());
  EXPECT_EQ(results[2]->num_rows(), 0);
  // A session cannot have two shares of one pass.
  EXPECT_EQ(results[3].status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SmallModelTest, TheWholeContextCanBeUsedAndNotOneTokenMore) {
  auto model = LoadSmall();
  const std::vector<TokenId> all(kContextLength, 1);
  EXPECT_TRUE(ExtendOne(*model, {Session(1), 0, all, 1}).ok());
  EXPECT_FALSE(ExtendOne(*model, {Session(1), kContextLength, one_, 1}).ok());
  EXPECT_TRUE(
      ExtendOne(*model, {Session(1), kContextLength - 1, one_, 1}).ok());
}

TEST_F(SmallModelTest, AReleasedSessionIsOneOfLengthZero) {
  auto model = LoadSmall();
  const auto first = LastRow(*model, {Session(1), 0, five_, 1});
  model->Release(Session(1));
  model->Release(Session(9));  // never seen
  EXPECT_FALSE(ExtendOne(*model, {Session(1), 1, one_, 1}).ok());
  EXPECT_EQ(LastRow(*model, {Session(1), 0, five_, 1}), first);
}

TEST_F(SmallModelTest, TheBoundOnCachedTokensHoldsOverAllSessions) {
  auto model = LoadSmall(/*max_cached_tokens=*/40);
  const std::vector<TokenId> twenty(20, 1);
  EXPECT_TRUE(ExtendOne(*model, {Session(1), 0, twenty, 1}).ok());
  EXPECT_TRUE(ExtendOne(*model, {Session(2), 0, twenty, 1}).ok());
  const auto third = ExtendOne(*model, {Session(3), 0, one_, 1});
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);

  // The refused growth of a session leaves its cache as it was.
  EXPECT_EQ(ExtendOne(*model, {Session(1), 20, one_, 1}).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ExtendOne(*model, {Session(1), 19, one_, 1}).ok());

  model->Release(Session(2));
  EXPECT_TRUE(ExtendOne(*model, {Session(3), 0, one_, 1}).ok());
  EXPECT_TRUE(ExtendOne(*model, {Session(1), 20, one_, 1}).ok());
}

TEST_F(SmallModelTest, RowsOutliveTheModelAndLaterPasses) {
  auto model = LoadSmall();
  auto rows = ExtendOne(*model, {Session(1), 0, five_, 1});
  const std::vector<float> before(rows->Row(0).begin(), rows->Row(0).end());
  LastRow(*model, {Session(1), 5, one_, 1});
  model.reset();
  EXPECT_THAT(rows->Row(0), ::testing::ElementsAreArray(before));
}

absl::Status LoadError(const TorchCausalLmOptions& options) {
  return LoadTorchCausalLm(options).status();
}

TEST(TorchCausalLmTest, OptionsThatNameNothingAreRefused) {
  const std::string demo = DemoModel("demo-draft");
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(LoadError({.model_directory = demo, .device = "tpu"}).code(),
            kInvalid);
  EXPECT_EQ(LoadError({.model_directory = demo, .device = "cuda:-1"}).code(),
            kInvalid);
  EXPECT_EQ(LoadError({.model_directory = demo, .dtype = "int3"}).code(),
            kInvalid);
  EXPECT_EQ(LoadError({.model_directory = demo, .kernels = "fast"}).code(),
            kInvalid);
  EXPECT_EQ(
      LoadError({.model_directory = demo, .max_cached_tokens = -1}).code(),
      kInvalid);
  EXPECT_EQ(LoadError({.model_directory = demo + "-none"}).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace outrider
