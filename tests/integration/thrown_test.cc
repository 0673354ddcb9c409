// SPDX-License-Identifier: Apache-2.0
// Requests that no memory is there for, beside a stream that goes on.
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class ThrowingTokenizer final : public Tokenizer {
 public:
  std::vector<TokenId> Encode(absl::string_view text) const override {
    if (text == "too much") throw std::bad_alloc();
    throw std::length_error("of the client's own text");
  }
  std::optional<size_t> max_bytes_per_token() const override {
    return std::nullopt;
  }
  std::unique_ptr<StreamingDecoder> NewDecoder(
      absl::Span<const TokenId> /*before*/) const override {
    return nullptr;
  }
  int vocab_size() const override { return kVocab; }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  const std::string fingerprint_ = "same";
};

TEST(ThrownTest, AnExceptionWhileARequestIsReadEndsThatRequestAlone) {
  Hold hold;
  std::function<void()> act;
  InProcessCluster::Options options = SmallCluster();
  options.tokenizer = std::make_shared<ThrowingTokenizer>();
  options.target.table = ActInRound(options.target.table, 50, act);
  InProcessCluster cluster(options);
  ASSERT_TRUE(cluster.WaitUntilReady());
  act = [&] { hold.Wait(); };
  std::jthread neighbour([&] {
    const Result result = Generate(cluster, Greedy({5}, 300, /*k=*/4));
    EXPECT_THAT(result.status, IsOk());
    EXPECT_EQ(result.tokens, PlainGreedy({5}, 300, kVocab));
  });
  hold.AwaitStream();
  const auto is_unread = AllOf(HasSubstr("failed to read the request"),
                               Not(HasSubstr("own text")));
  client::GenerationRequest request = Greedy({5}, 5, /*k=*/2);
  request.prompt = "too much";
  EXPECT_THAT(Generate(cluster, request).status,
              StatusIs(absl::StatusCode::kInternal, is_unread));
  request.prompt = "too long";
  EXPECT_THAT(Generate(cluster, request).status,
              StatusIs(absl::StatusCode::kInternal, is_unread));
  hold.Release();
  neighbour.join();
  EXPECT_TRUE(cluster.service().Drain(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace outrider::testing
