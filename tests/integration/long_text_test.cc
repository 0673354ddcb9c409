// SPDX-License-Identifier: Apache-2.0
// Texts that take long to tokenise keep nobody else waiting.
#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/testing/status_matchers.h"
#include "core/tokenizer/tokenizer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

class NoText final : public StreamingDecoder {
 public:
  std::string Append(TokenId /*token*/) override { return ""; }
  std::string Finish() override { return ""; }
};

// Takes until the test says so.
class SlowTokenizer final : public Tokenizer {
 public:
  std::vector<TokenId> Encode(absl::string_view /*text*/) const override {
    ++num_begun;
    may_end.wait();
    return {1, 2, 3};
  }
  std::unique_ptr<StreamingDecoder> NewDecoder(
      absl::Span<const TokenId> /*before*/) const override {
    return std::make_unique<NoText>();
  }
  int vocab_size() const override { return kVocab; }
  const std::string& fingerprint() const override { return fingerprint_; }

  mutable std::atomic<int> num_begun = 0;
  mutable std::latch may_end{1};

 private:
  const std::string fingerprint_ = "slow";
};

TEST(LongTextTest, TextsThatAreTokenisedLeaveTheThreadsOfOthersAlone) {
  const auto tokenizer = std::make_shared<SlowTokenizer>();
  InProcessCluster::Options options = SmallCluster();
  options.tokenizer = tokenizer;
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  std::vector<std::unique_ptr<client::GenerationStream>> streams;
  for (int i = 0; i < 48; ++i) {
    client::GenerationRequest request = {.prompt = "a long text"};
    request.temperature = 0;
    request.max_tokens = 4;
    streams.push_back(
        cluster.client().Generate(request, std::chrono::minutes(1)));
  }
  while (tokenizer->num_begun == 0) std::this_thread::yield();
  // Those whose answer needs no text, over the same connection.
  const auto deployment = cluster.client().Describe(std::chrono::seconds(20));
  EXPECT_THAT(deployment, IsOk());
  std::vector<std::jthread> others;
  for (int i = 0; i < 8; ++i) {
    others.emplace_back([&cluster] {
      EXPECT_THAT(cluster.client().Describe(std::chrono::seconds(20)), IsOk());
    });
  }
  others.clear();
  tokenizer->may_end.count_down();
  const TokenSeq text = PlainGreedy({1, 2, 3}, 4, kVocab);
  for (const auto& stream : streams) EXPECT_EQ(Drain(*stream).tokens, text);
}

}  // namespace
}  // namespace outrider::testing
