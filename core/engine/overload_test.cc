// SPDX-License-Identifier: Apache-2.0
// More streams than there are blocks for: what is left of the node's rows, and
// that every stream ends.
#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

#include "core/base/retry_delay.h"
#include "core/testing/scheduler_test.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::SchedulerTest;
using std::chrono::microseconds;
using std::chrono::milliseconds;

// Calls as coordinators make them: who is refused or preempted comes back.
class OverloadTest : public SchedulerTest {
 protected:
  explicit OverloadTest(int num_blocks)
      : SchedulerTest({.max_hold = 0, .sessions = {.num_blocks = num_blocks}}) {
  }

  int UpTo(int n) { return 1 + static_cast<int>(random_() % n); }
  // Names from 1 on; each has a prompt and an answer of about so many tokens.
  void AddStreams(int count, int prompt, int answer) {
    for (int i = 0; i < count; ++i) {
      const int name = static_cast<int>(streams_.size()) + 1;
      const int begin = prompt / 2 + UpTo(prompt);
      streams_.push_back({.name = name,
                          .prompt = begin,
                          .length = begin,
                          .end = begin + answer / 2 + UpTo(answer)});
    }
  }
  // All who are to call now do, in any order; then a pass.
  void CallAndRunPass() {
    std::vector<Stream*> callers;
    for (Stream& stream : streams_) {
      const bool has_no_call = stream.is_calling || stream.length == stream.end;
      if (!has_no_call && stream.calls_at <= now_) callers.push_back(&stream);
    }
    std::shuffle(callers.begin(), callers.end(), random_);
    for (Stream* stream : callers) Call(*stream);
    int num_rows = 0;
    for (const auto& [name, num_tokens] : BeginPass()) num_rows += num_tokens;
    if (num_rows == 0) {
      now_ += milliseconds(1);
    } else {
      num_rows_run_ += num_rows;
      EndPass(milliseconds(20) + microseconds(50) * num_rows);
    }
    for (Stream& stream : streams_) {
      if (stream.is_calling && endings_.contains(stream.name)) Answer(stream);
    }
  }
  // Goes on until all streams have ended.
  void RunAll() {
    const auto start = now_;
    const auto has_ended = [](const Stream& one) {
      return one.length == one.end;
    };
    while (!std::all_of(streams_.begin(), streams_.end(), has_ended)) {
      CallAndRunPass();
      ASSERT_LT(now_ - start, std::chrono::minutes(10));
    }
  }

  struct Stream {
    int name = 0;
    int prompt = 0;
    int length = 0;  // committed
    int end = 0;
    bool is_calling = false;
    Clock::time_point calls_at = {};
  };
  std::vector<Stream> streams_;
  std::mt19937 random_{1};
  int num_committed_ = 0;
  int num_rows_run_ = 0;

 private:
  void Call(Stream& stream) {
    RequestHeader header = Header(stream.name, 0);
    CacheDelta& delta = header.delta;
    delta.keep_length = std::min(delta.keep_length, stream.length - 1);
    delta.append_tokens = TokenSeq(stream.length - delta.keep_length, 1);
    stream.is_calling = true;
    endings_.erase(stream.name);
    Submit(header, {.holds_up_stream = stream.length > stream.prompt});
  }
  void Answer(Stream& stream) {
    const Ending& ending = endings_.at(stream.name);
    stream.is_calling = false;
    stream.calls_at = now_ + milliseconds(2);
    if (ending.miss.has_value()) return;  // was preempted while it waited
    if (!ending.status.ok()) {
      ASSERT_TRUE(IsRefusal(ending.status)) << ending.status;
      stream.calls_at = now_ + RetryDelayOf(ending.status).value();
      return;
    }
    const int num_accepted = std::min(UpTo(4), stream.end - stream.length);
    stream.length += num_accepted;
    num_committed_ += num_accepted;
    if (stream.length == stream.end) {
      scheduler_.Release(Header(stream.name, 0));
    }
  }
};

class TwiceTheLoadTest : public OverloadTest {
 protected:
  TwiceTheLoadTest() : OverloadTest(/*num_blocks=*/1024) {}
};

// A preempted session came back as soon as its text fitted, and was preempted
// for those that grow. So most rows were for texts that had been computed
// before: more than twice as many as there were tokens in all answers.
TEST_F(TwiceTheLoadTest, FewRowsAreForWhatWasComputedBefore) {
  // A stream has some 16 blocks half way through, and 27 at its end.
  AddStreams(128, /*prompt=*/100, /*answer=*/320);
  int num_prompt_tokens = 0;
  for (const Stream& stream : streams_) num_prompt_tokens += stream.prompt;
  RunAll();
  EXPECT_GT(scheduler_.sessions().num_preempted(), 0);
  EXPECT_LT(num_rows_run_ - num_prompt_tokens - num_committed_,
            num_committed_ / 2);
}

class OneTextTest : public OverloadTest {
 protected:
  OneTextTest() : OverloadTest(/*num_blocks=*/8) {}
};

TEST_F(OneTextTest, EveryStreamEndsWhereEachMayNeedAllThatThereIs) {
  for (int i = 0; i < 10; ++i) {
    salt_ = i % 2 == 0 ? "" : "s";
    AddStreams(12, /*prompt=*/40, /*answer=*/46);
    for (Stream& stream : streams_) {
      const bool has_ended = stream.length == stream.end;
      if (!has_ended && UpTo(2) == 1) stream.end = 8 * kKvBlockLength + 1;
    }
    RunAll();
  }
  EXPECT_GT(scheduler_.sessions().num_preempted(), 0);
  EXPECT_EQ(scheduler_.sessions().blocks().num_free(), 8);
}

}  // namespace
}  // namespace outrider
