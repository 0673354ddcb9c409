// SPDX-License-Identifier: Apache-2.0
// Models of every family on the GPU's kernels, emulated: logits against those
// of the reference implementation, and rows that depend on nothing but their
// context. On a GPU, gpu_check sets OUTRIDER_CUDA_LIBRARY to the path of its
// library.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/cuda_model/open_gpu.h"
#include "core/torch_model/torch_causal_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

namespace outrider {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr int kNumSessions = 2;

std::string CudaLibrary() {
  const char* named = std::getenv("OUTRIDER_CUDA_LIBRARY");
  return named == nullptr ? OUTRIDER_EMULATED_GPU : named;
}

// The output says on what they were run.
class SayDevice : public ::testing::Environment {
 public:
  void SetUp() override {
    const auto gpu = OpenGpu(0, CudaLibrary());
    ASSERT_TRUE(gpu.ok()) << gpu.status();
    std::printf("CUDA kernels: %s\n", (*gpu)->name().c_str());
  }
};
const ::testing::Environment* const kSayDevice =
    ::testing::AddGlobalTestEnvironment(new SayDevice);

class CudaGoldenTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    std::ifstream file(Directory() + "/golden.json");
    const auto golden = nlohmann::json::parse(file);
    tokens_ = golden["tokens"].get<std::vector<TokenId>>();
    logits_ = golden["logits"].get<std::vector<std::vector<float>>>();
    ASSERT_EQ(tokens_.size(), logits_.size());
  }

  static std::string Directory() {
    const char* source = std::getenv("OUTRIDER_SOURCE_DIR");
    return absl::StrCat(source == nullptr ? "." : source,
                        "/tests/golden/testdata/models/", GetParam());
  }

  static std::unique_ptr<CausalLm> Load(const std::string& dtype) {
    auto model = LoadTorchCausalLmBy(
        CudaLibrary(),
        {.model_directory = Directory(), .device = "cuda", .dtype = dtype});
    EXPECT_TRUE(model.ok()) << model.status();
    if (!model.ok()) return nullptr;
    const int num_blocks = NumKvBlocks((*model)->info().context_length);
    EXPECT_TRUE((*model)->AllocateKvBlocks(kNumSessions * num_blocks).ok());
    return *std::move(model);
  }

  // The blocks of one of the sessions, which lie between those of others, and
  // backwards.
  static std::vector<KvBlockId> Table(const CausalLm& model, int session) {
    std::vector<KvBlockId> table;
    for (int i = NumKvBlocks(model.info().context_length); i > 0; --i) {
      table.push_back((i - 1) * kNumSessions + session);
    }
    return table;
  }

  int length() const { return static_cast<int>(tokens_.size()); }

  absl::Span<const TokenId> Tokens(int begin, int end) const {
    return absl::MakeConstSpan(tokens_).subspan(begin, end - begin);
  }

  LogitRows Extend(CausalLm& model, int session, int begin,
                   absl::Span<const TokenId> tokens) const {
    const std::vector<KvBlockId> table = Table(model, session);
    auto rows =
        model.Extend({{table, begin, tokens, static_cast<int>(tokens.size())}});
    EXPECT_TRUE(rows[0].ok()) << rows[0].status();
    return rows[0].ok() ? *rows[0] : LogitRows();
  }

  // The root of the mean square of the differences to the reference.
  double Error(const LogitRows& rows, int first) const {
    double sum = 0;
    int count = 0;
    for (int i = 0; i < rows.num_rows(); ++i) {
      for (int token = 0; token < rows.vocab_size(); ++token, ++count) {
        const double error = rows.Row(i)[token] - logits_[first + i][token];
        sum += error * error;
      }
    }
    return std::sqrt(sum / count);
  }
  double Spread() const {
    double sum = 0;
    for (const float logit : logits_.back()) sum += logit * logit;
    return std::sqrt(sum / static_cast<double>(logits_.back().size()));
  }

  std::vector<TokenId> tokens_;
  std::vector<std::vector<float>> logits_;  // [length][vocab_size]
};

// They are as near as roundings of weights and activations to 16 bits leave
// them.
TEST_P(CudaGoldenTest, LogitsAreThoseOfTheReference) {
  for (const char* dtype : {"float16", "bfloat16"}) {
    const auto model = Load(dtype);
    EXPECT_THAT(model->info().numerics, StartsWith("cuda_"));
    EXPECT_EQ(model->info().dtype, dtype);
    const LogitRows rows = Extend(*model, 0, 0, Tokens(0, length()));
    const double unit = dtype[0] == 'f' ? 0x1p-11 : 0x1p-8;
    const double error = Error(rows, 0) / Spread() / unit;
    RecordProperty(dtype, std::to_string(error));
    EXPECT_LT(error, 8) << dtype;
  }
}

TEST_P(CudaGoldenTest, RowsAreBitEqualHoweverTheyAreCutIntoPasses) {
  const auto model = Load("bfloat16");
  const LogitRows whole = Extend(*model, 0, 0, Tokens(0, length()));
  const auto tables = {Table(*model, 0), Table(*model, 1)};
  for (int begin = 0, n = 1; begin < length(); begin += n, n = n % 5 + 1) {
    const int end = std::min(length(), begin + n);
    // The other session runs some of its own tokens once more beside it.
    const std::vector<Extension> batch = {
        {*tables.begin(), length() - n, Tokens(length() - n, length()), n},
        {*(tables.begin() + 1), begin, Tokens(begin, end), end - begin}};
    const auto results = model->Extend(batch);
    ASSERT_TRUE(results[0].ok() && results[1].ok());
    for (int i = 0; i < end - begin; ++i) {
      EXPECT_EQ(results[1]->Row(i), whole.Row(begin + i)) << begin + i;
    }
    EXPECT_EQ(results[0]->Row(n - 1), whole.Row(length() - 1)) << n;
  }
}

int Argmax(absl::Span<const float> row) {
  return static_cast<int>(std::max_element(row.begin(), row.end()) -
                          row.begin());
}

// Greedy rounds, whose drafts are right or wrong by turns.
TEST_P(CudaGoldenTest, GreedyTokensAreThoseOfPlainDecodingForEveryK) {
  constexpr int kNumTokens = 12;
  const auto model = Load("bfloat16");
  const int prompt = length() / 2;
  std::vector<TokenId> plain;
  for (int k = 0; k <= 8; ++k) {
    std::vector<TokenId> text(tokens_.begin(), tokens_.begin() + prompt);
    text.push_back(
        Argmax(Extend(*model, k % 2, 0, Tokens(0, prompt)).Row(prompt - 1)));
    while (static_cast<int>(text.size()) < prompt + kNumTokens) {
      const int begin = static_cast<int>(text.size()) - 1;
      std::vector<TokenId> round = {text.back()};
      for (int i = 0; i < k; ++i) {
        const size_t at = static_cast<size_t>(begin + 1 + i - prompt);
        const bool is_right = (begin + i) % 4 != 0 && at < plain.size();
        round.push_back(is_right ? plain[at] : i % 7);
      }
      const LogitRows rows = Extend(*model, k % 2, begin, round);
      for (int i = 0; i <= k; ++i) {
        text.push_back(Argmax(rows.Row(i)));
        if (i == k || round[i + 1] != text.back()) break;
      }
    }
    text.resize(prompt + kNumTokens);
    text.erase(text.begin(), text.begin() + prompt);
    if (k == 0) plain = text;
    EXPECT_EQ(text, plain) << k;
  }
}

TEST(CudaLoadTest, HeadsThatTheKernelsDoNotTakeAreRefusedBeforeWeightsAreRead) {
  const char* source = std::getenv("OUTRIDER_SOURCE_DIR");
  const auto model = LoadTorchCausalLmBy(
      CudaLibrary(), {.model_directory = absl::StrCat(
                          source == nullptr ? "." : source,
                          "/tests/golden/testdata/models/tinyllama_tied_bf16"),
                      .device = "cuda"});
  EXPECT_EQ(model.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(model.status().message()), HasSubstr("head_dim 4"));
}

INSTANTIATE_TEST_SUITE_P(Models, CudaGoldenTest,
                         ::testing::Values("gpt2", "gpt2_untied", "llama",
                                           "llama3_rope", "llama3_rope_v5",
                                           "llama_biases", "llama_linear_rope",
                                           "llama_yarn_v5", "mistral_fp16",
                                           "mistral_sliding_sharded",
                                           "qwen2_sliding",
                                           "qwen2_sliding_bf16_sharded",
                                           "qwen2_tied", "qwen3", "qwen3_yarn"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace outrider
