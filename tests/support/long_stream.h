// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_LONG_STREAM_H_
#define OUTRIDER_TESTS_SUPPORT_LONG_STREAM_H_

#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "absl/types/span.h"
#include "client/generation_client.h"
#include "core/base/token.h"
#include "core/wire/round_stats.h"
#include "gtest/gtest.h"
#include "tests/support/hash_model.h"
#include "tests/support/in_process_cluster.h"
#include "tests/support/small_cluster.h"

namespace outrider::testing {

// A stream that is read for as long as it takes until something has happened.
class LongStream {
 public:
  explicit LongStream(InProcessCluster& cluster)
      : stream_(cluster.client().Generate(Greedy({5}, 60000, /*k=*/4),
                                          std::chrono::minutes(2))) {}
  // Context for the models of such a stream. A row takes the target a moment,
  // or a core that has nothing else to do would be at the text's end before a
  // drafter that is asked once a second is found.
  static InProcessCluster::Options Cluster() {
    InProcessCluster::Options options = SmallCluster();
    options.target.context_length = options.draft.context_length = 1 << 16;
    options.target.table = [table = std::move(options.target.table)](
                               absl::Span<const TokenId> context) {
      std::this_thread::sleep_for(std::chrono::microseconds(20));
      return table(context);
    };
    return options;
  }

  ::testing::AssertionResult ReadUntil(
      const std::function<bool(const RoundStats&)>& has_happened) {
    while (true) {
      const auto update = stream_->Next();
      if (!update.ok()) {
        return ::testing::AssertionFailure() << update.status();
      }
      if (!update->has_value()) {
        return ::testing::AssertionFailure() << "the text ended before";
      }
      for (const auto& token : (*update)->tokens) tokens_.push_back(token.id);
      if ((*update)->round && has_happened(*(*update)->round)) {
        return ::testing::AssertionSuccess();
      }
    }
  }
  ::testing::AssertionResult ReadUntilNumAccepted(int num) {
    return ReadUntil([num, sum = 0](const RoundStats& round) mutable {
      sum += round.num_accepted;
      return sum >= num;
    });
  }
  void ExpectPlain() const {
    EXPECT_EQ(tokens_,
              PlainGreedy({5}, static_cast<int>(tokens_.size()), kVocab));
  }

 private:
  std::unique_ptr<client::GenerationStream> stream_;
  TokenSeq tokens_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_LONG_STREAM_H_
