// SPDX-License-Identifier: Apache-2.0
// Logits against those of the reference implementation: the models are small
// and random, made by tools/make_golden.py.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace outrider {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr float kTolerance = 1e-4f;

std::filesystem::path ModelsDirectory() {
  const char* source = std::getenv("OUTRIDER_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) /
         "tests/golden/testdata/models";
}

std::vector<std::string> CaseNames() {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry :
       std::filesystem::directory_iterator(ModelsDirectory(), missing)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

constexpr int kNumSessions = 3;

// The blocks of one of three sessions, with room for a whole context: those of
// all three lie between one another, and backwards.
std::vector<KvBlockId> Table(const ModelInfo& model, int session) {
  const int num_blocks = NumKvBlocks(model.context_length);
  std::vector<KvBlockId> table;
  for (int i = num_blocks; i > 0; --i) {
    table.push_back((i - 1) * kNumSessions + session);
  }
  return table;
}

class GoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream file(ModelsDirectory() / GetParam() / "golden.json");
    const auto golden = nlohmann::json::parse(file);
    tokens_ = golden["tokens"].get<std::vector<TokenId>>();
    logits_ = golden["logits"].get<std::vector<std::vector<float>>>();
    ASSERT_EQ(tokens_.size(), logits_.size());
    model_ = Load("float32");
  }

  static std::unique_ptr<CausalLm> Load(const std::string& dtype,
                                        const std::string& kernels = "auto") {
    auto model = LoadTorchCausalLm(
        {.model_directory = (ModelsDirectory() / GetParam()).string(),
         .dtype = dtype,
         .kernels = kernels});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return nullptr;
    EXPECT_TRUE(
        (*model)
            ->AllocateKvBlocks(kNumSessions *
                               NumKvBlocks((*model)->info().context_length))
            .ok());
    return *std::move(model);
  }

  int length() const { return static_cast<int>(tokens_.size()); }

  absl::Span<const TokenId> Tokens(int begin, int end) const {
    return absl::MakeConstSpan(tokens_).subspan(begin, end - begin);
  }

  LogitRows Extend(CausalLm& model, int session, int cached_length,
                   absl::Span<const TokenId> tokens, int num_rows) const {
    const std::vector<KvBlockId> table = Table(model.info(), session);
    auto rows = model.Extend({{table, cached_length, tokens, num_rows}})[0];
    EXPECT_TRUE(rows.ok()) << rows.status();
    return rows.ok() ? *rows : LogitRows();
  }

  // The largest difference of row `i` from the reference at `position`.
  float Error(const LogitRows& rows, int i, int position) const {
    float largest = 0.0f;
    const std::vector<float>& expected = logits_[position];
    EXPECT_EQ(rows.Row(i).size(), expected.size());
    for (size_t token = 0; token < expected.size(); ++token) {
      const float error = std::abs(rows.Row(i)[token] - expected[token]);
      if (!(error <= largest)) largest = error;  // NaN too
    }
    return largest;
  }

  // Rows that end at position `end` - 1.
  void ExpectGolden(const LogitRows& rows, int end) const {
    for (int i = 0; i < rows.num_rows(); ++i) {
      const int position = end - rows.num_rows() + i;
      EXPECT_LE(Error(rows, i, position), kTolerance)
          << "row of position " << position;
    }
  }

  std::vector<TokenId> tokens_;
  std::vector<std::vector<float>> logits_;  // [length][vocab_size]
  std::unique_ptr<CausalLm> model_;
};

TEST_P(GoldenTest, OnePieceGivesTheLogitsOfTheReference) {
  const LogitRows rows = Extend(*model_, 0, 0, Tokens(0, length()), length());
  ASSERT_EQ(rows.num_rows(), length());
  ExpectGolden(rows, length());
}

// What runs on a GPU, here on the CPU.
TEST_P(GoldenTest, TorchsOwnOperationsGiveTheLogitsOfTheReference) {
  const auto model = Load("float32", "aten");
  const int half = length() / 2;
  Extend(*model, 0, 0, Tokens(0, half + 3), 1);
  ExpectGolden(Extend(*model, 0, half, Tokens(half, length()), length() / 3),
               length());
}

// Our own kernels: a row does not depend on how many are computed with it.
TEST_P(GoldenTest, RowsAreBitEqualHoweverTheyAreCutIntoPasses) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    const auto model = Load(dtype);
    const LogitRows whole = Extend(*model, 0, 0, Tokens(0, length()), length());
    for (int begin = 0, n = 1; begin < length(); begin += n, n = n % 9 + 1) {
      const int end = std::min(length(), begin + n);
      const LogitRows part =
          Extend(*model, 1, begin, Tokens(begin, end), end - begin);
      for (int i = 0; i < part.num_rows(); ++i) {
        EXPECT_EQ(part.Row(i), whole.Row(begin + i))
            << dtype << ", position " << begin + i;
      }
    }
  }
}

TEST_P(GoldenTest, TokenByTokenGivesTheLogitsOfTheReference) {
  for (int i = 0; i < length(); ++i) {
    ExpectGolden(Extend(*model_, 0, i, Tokens(i, i + 1), 1), i + 1);
  }
}

TEST_P(GoldenTest, WrongTokensThatWereCutOffLeaveNoTrace) {
  std::mt19937 random(7);
  const auto draw = [&random](int low, int high) {
    return low + static_cast<int>(random() % (high - low + 1));
  };
  int right = 0;   // leading tokens in the cache that are those of the case
  int cached = 0;  // all tokens in the cache
  for (int round = 0; round < 60; ++round) {
    const bool is_short = draw(0, 3) == 0;
    const int keep = is_short ? draw(0, right) : right;
    const int end = std::min(length(), keep + draw(1, 9));
    if (keep == end) {
      right = cached = length() / 2;
      Extend(*model_, 0, 0, Tokens(0, right), 0);
      continue;
    }
    const int num_rows = draw(0, end - keep);
    ExpectGolden(Extend(*model_, 0, keep, Tokens(keep, end), num_rows), end);
    right = cached = end;

    std::vector<TokenId> wrong(draw(0, 5));
    for (TokenId& token : wrong) token = draw(0, 60);
    if (wrong.empty() || cached + 5 > model_->info().context_length) continue;
    Extend(*model_, 0, cached, wrong, 1);
  }
}

TEST_P(GoldenTest, SessionsInOneBatchDoNotSeeEachOther) {
  const int third = length() / 3;
  Extend(*model_, 0, 0, Tokens(0, third), 0);
  const std::vector<std::vector<KvBlockId>> tables = {Table(model_->info(), 0),
                                                      Table(model_->info(), 1),
                                                      Table(model_->info(), 2)};
  const std::vector<Extension> batch = {
      {tables[0], third, Tokens(third, length()), 3},
      {tables[1], 0, Tokens(0, 2 * third), 2 * third},
      {tables[2], 0, Tokens(0, 1), 1}};
  const auto results = model_->Extend(batch);
  const std::vector<int> ends = {length(), 2 * third, 1};
  for (size_t i = 0; i < batch.size(); ++i) {
    ASSERT_TRUE(results[i].ok()) << results[i].status();
    ASSERT_EQ(results[i]->num_rows(), batch[i].num_rows);
    ExpectGolden(*results[i], ends[i]);
  }
}

TEST_P(GoldenTest, Bfloat16StaysNearTheReference) {
  const auto model = Load("bfloat16");
  EXPECT_EQ(model->info().dtype, "bfloat16");
  const LogitRows rows = Extend(*model, 0, 0, Tokens(0, length()), length());
  // The worst logit of each row, averaged: within +-6, eight bits of mantissa
  // cost some hundredths.
  float sum = 0.0f;
  for (int i = 0; i < length(); ++i) sum += Error(rows, i, i);
  EXPECT_LE(sum / static_cast<float>(length()), 0.15f);
  EXPECT_GT(sum / static_cast<float>(length()), 1e-4f)
      << "that was not bfloat16";
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenTest, ::testing::ValuesIn(CaseNames()),
                         [](const auto& test) { return test.param; });

std::vector<TokenId> EosIds(const std::string& name) {
  auto model = LoadTorchCausalLm(
      {.model_directory = (ModelsDirectory() / name).string()});
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? (*model)->info().eos_ids : std::vector<TokenId>{-1};
}

TEST(GoldenModelsTest, EosIdsComeFromBothConfigFilesEachOnce) {
  EXPECT_THAT(EosIds("llama"), ElementsAre(1));
  EXPECT_THAT(EosIds("llama_biases"), ElementsAre(1, 2, 3));
  EXPECT_THAT(EosIds("llama3_rope_v5"), IsEmpty());
}

TEST(GoldenModelsTest, NoCaseOfTheListIsMissing) {
  EXPECT_EQ(CaseNames().size(), 16u);
}

}  // namespace
}  // namespace outrider
