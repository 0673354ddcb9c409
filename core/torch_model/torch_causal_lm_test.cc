// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/torch_causal_lm.h"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/kernels/choose_level.h"
#include "core/model/solo_session.h"
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

std::unique_ptr<CausalLm> Load(CheckpointOptions options) {
  auto model = LoadTorchCausalLm(options);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : nullptr;
}

TokenId Argmax(absl::Span<const float> row) {
  return static_cast<TokenId>(std::max_element(row.begin(), row.end()) -
                              row.begin());
}

std::vector<TokenId> Greedy(CausalLm& model, std::vector<TokenId> tokens,
                            int num_new) {
  auto session = SoloSession::Open(model, 64);
  EXPECT_TRUE(session.ok()) << session.status();
  int cached = 0;
  std::vector<TokenId> text;
  for (int i = 0; i < num_new; ++i) {
    auto rows = session->Extend(cached, tokens, 1);
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
  // Keys and values of 10 layers, 2 heads, 64 elements of 2 or 4 bytes.
  const int element = model->info().dtype == "bfloat16" ? 2 : 4;
  EXPECT_EQ(model->info().kv_block_bytes,
            2 * 10 * 2 * 64 * element * kKvBlockLength);
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
  // "quit()\n    parser.quit"
  EXPECT_THAT(Greedy(*model, ParserPrompt(), 8),
              ElementsAre(311, 387, 396, 260, 1336, 15, 311, 387));
}

TEST(TorchCausalLmTest, NumericsSayWhoseKernelsRun) {
  const std::string demo = DemoModel("demo-draft");
  EXPECT_EQ(Load({.model_directory = demo})->info().numerics,
            kernels::LevelName(kernels::ChooseLevel()));
  EXPECT_EQ(
      Load({.model_directory = demo, .kernels = "portable"})->info().numerics,
      "portable");
  EXPECT_EQ(Load({.model_directory = demo, .kernels = "aten"})->info().numerics,
            "aten");
}

class SmallModelTest : public ::testing::Test {
 protected:
  static constexpr int kContextLength = 128;

  std::unique_ptr<CausalLm> LoadSmall() {
    return Load({.model_directory = absl::StrCat(
                     SourceDir(), "/tests/golden/testdata/models/llama")});
  }
  // It has blocks for one whole context, all of them this table's.
  std::unique_ptr<CausalLm> LoadWithBlocks() {
    auto model = LoadSmall();
    EXPECT_TRUE(model->AllocateKvBlocks(static_cast<int>(table_.size())).ok());
    return model;
  }

  absl::StatusOr<LogitRows> ExtendOne(CausalLm& model, int cached_length,
                                      absl::Span<const TokenId> tokens,
                                      int num_rows) {
    return model.Extend({{table_, cached_length, tokens, num_rows}})[0];
  }
  std::vector<float> LastRow(CausalLm& model, int cached_length,
                             absl::Span<const TokenId> tokens) {
    auto rows = ExtendOne(model, cached_length, tokens, 1);
    EXPECT_TRUE(rows.ok()) << rows.status();
    if (!rows.ok()) return {};
    return {rows->Row(0).begin(), rows->Row(0).end()};
  }

  const std::vector<KvBlockId> table_ = {5, 3, 0, 1, 7, 2, 4, 6};
  const std::vector<TokenId> five_ = {3, 14, 15, 9, 26};
  const std::vector<TokenId> one_ = {5};
};

TEST_F(SmallModelTest, InvalidExtensionsAreRefusedAndChangeNothing) {
  auto model = LoadWithBlocks();
  LastRow(*model, 0, five_);
  const std::vector<float> expected = LastRow(*model, 5, one_);

  const std::vector<TokenId> negative = {1, -1};
  const std::vector<TokenId> beyond = {1, model->info().vocab_size};
  const std::vector<TokenId> many(kContextLength - 4, 1);
  const std::vector<TokenId> twenty(20, 1);
  const std::vector<Extension> invalid = {
      {table_, -1, one_, 1},
      {table_, 5, {}, 0},
      {table_, 5, one_, 2},
      {table_, 5, one_, -1},
      {table_, 0, negative, 1},
      {table_, 0, beyond, 1},
      {table_, 5, many, 1},
      {absl::MakeConstSpan(table_).first(1), 0, twenty, 1},
      {{}, 0, one_, 1},
  };
  for (const Extension& extension : invalid) {
    EXPECT_EQ(model->Extend({extension})[0].status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(LastRow(*model, 5, one_), expected);
}

TEST_F(SmallModelTest, AnInvalidExtensionDoesNotDisturbTheRestOfItsBatch) {
  auto model = LoadWithBlocks();
  const auto table = absl::MakeConstSpan(table_);
  const auto results = model->Extend({{table.first(1), 0, five_, 2},
                                      {table.subspan(1, 1), 7, one_, 2},
                                      {table.subspan(2, 1), 0, one_, 0}});
  ASSERT_EQ(results.size(), 3u);
  ASSERT_TRUE(results[0].ok());
  EXPECT_EQ(results[0]->num_rows(), 2);
  EXPECT_EQ(results[1].status().code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(results[2].ok());
  EXPECT_EQ(results[2]->num_rows(), 0);
}

TEST_F(SmallModelTest, TheWholeContextCanBeUsedAndNotOneTokenMore) {
  auto model = LoadWithBlocks();
  const std::vector<TokenId> all(kContextLength, 1);
  EXPECT_TRUE(ExtendOne(*model, 0, all, 1).ok());
  EXPECT_FALSE(ExtendOne(*model, kContextLength, one_, 1).ok());
  EXPECT_TRUE(ExtendOne(*model, kContextLength - 1, one_, 1).ok());
}

TEST_F(SmallModelTest, MoreBlocksThanThereIsMemoryForAreRefused) {
  auto model = LoadSmall();
  const int64_t available = model->AvailableKvBytes();
  EXPECT_GT(available, int64_t{1} << 20);
  const int64_t too_many = 4 * available / model->info().kv_block_bytes;
  EXPECT_EQ(model
                ->AllocateKvBlocks(static_cast<int>(std::min<int64_t>(
                    too_many, std::numeric_limits<int>::max())))
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(model->AllocateKvBlocks(8).ok());
  LastRow(*model, 0, five_);
}

TEST_F(SmallModelTest, RowsOutliveTheModelAndLaterPasses) {
  auto model = LoadWithBlocks();
  auto rows = ExtendOne(*model, 0, five_, 1);
  const std::vector<float> before(rows->Row(0).begin(), rows->Row(0).end());
  LastRow(*model, 5, one_);
  model.reset();
  EXPECT_THAT(rows->Row(0), ::testing::ElementsAreArray(before));
}

// Keeps this process from getting more than 2 MiB beyond what it uses.
class MemoryLimit {
 public:
  // Other threads' heaps are reserved in 64 MiB, which no limit takes back:
  // there must be none from the start of the program.
  static inline const int one_heap = mallopt(M_ARENA_MAX, 1);

  MemoryLimit() {
    malloc_trim(0);  // the heap's end, which earlier cases may have left large
    getrlimit(RLIMIT_AS, &before_);
    std::ifstream file("/proc/self/statm");
    rlim_t num_pages = 0;
    file >> num_pages;
    rlimit limit = before_;
    limit.rlim_cur =
        num_pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (2 << 20);
    EXPECT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
  }
  ~MemoryLimit() { setrlimit(RLIMIT_AS, &before_); }
  MemoryLimit(const MemoryLimit&) = delete;

 private:
  rlimit before_ = {};
};

TEST(TorchCausalLmTest, APassWithoutMemoryLeavesTheModelAndItsBlocksWhole) {
  auto model = Load({.model_directory = DemoModel("demo-draft")});
  constexpr int kTable = 64;  // blocks of a whole context
  ASSERT_TRUE(model->AllocateKvBlocks(3 * kTable).ok());
  std::vector<KvBlockId> blocks(3 * kTable);
  std::iota(blocks.begin(), blocks.end(), 0);
  const auto table = [&blocks](int i) {
    return absl::MakeConstSpan(blocks).subspan(kTable * i, kTable);
  };
  const std::vector<TokenId> few = {3, 14, 15};
  ASSERT_TRUE(model->Extend({{table(0), 0, few, 1}})[0].ok());
  const auto expected = model->Extend({{table(0), 3, few, 1}})[0];
  ASSERT_TRUE(expected.ok());

  // 44 MB of logits.
  const std::vector<TokenId> many(900, 7);
  const std::vector<Extension> pass = {{table(0), 3, many, 900},
                                       {table(1), 0, many, 900},
                                       {table(2), 0, many, 900}};
  {
    const MemoryLimit limit;
    // What the heap has left may be enough for one of them, or for all.
    for (const auto& result : model->Extend(pass)) {
      if (result.ok()) continue;
      EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
    }
  }
  for (const auto& result : model->Extend(pass)) EXPECT_TRUE(result.ok());
  const auto again = model->Extend({{table(0), 3, few, 1}})[0];
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->Row(0), expected->Row(0));
}

TEST(TorchCausalLmTest, BlocksThatTheProcessMayNotHaveAreRefused) {
  auto model = Load({.model_directory = DemoModel("demo-draft")});
  {
    const MemoryLimit limit;
    EXPECT_EQ(model->AllocateKvBlocks(20000).code(),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_TRUE(model->AllocateKvBlocks(20000).ok());
}

absl::Status LoadError(const CheckpointOptions& options) {
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
  EXPECT_EQ(LoadError({.model_directory = demo + "-none"}).code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace outrider
