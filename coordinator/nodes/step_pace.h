// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_STEP_PACE_H_
#define OUTRIDER_COORDINATOR_NODES_STEP_PACE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "coordinator/peers/failure_limit.h"
#include "core/base/mutex.h"

namespace outrider {

// How long a verifier takes over its steps, and after how long one that has not
// answered counts as late, where the session can go elsewhere. A step may take
// far longer than the slowest ones have taken; and besides four times as long
// as the node should need for the texts that this coordinator has sent it in
// the meantime. A step that is given up as late raises the limit by what was
// seen of it, so a node that is only slow is soon known to be. Thread-safe;
// shared by a node's sessions.
class StepPace {
 public:
  using Duration = std::chrono::milliseconds;

  // A step under way, and what was known of the node when it was sent.
  struct Step {
    int num_appended = 0;
    int64_t num_ended_before = 0;  // tokens
    double seconds_per_token = 0;
    Duration alone = {};  // it may take so long where nothing is taken in

    bool is_text() const { return num_appended > kFewTokens; }
  };

  // A step that appends so many tokens is sent, in which the verifier may go on
  // by itself. Answered, Late or Failed follows.
  Step Begin(int num_appended, bool may_go_on = false) {
    MutexLock lock(mu_);
    num_begun_ += num_appended;
    return {num_appended, num_ended_, seconds_per_token_,
            limit_.Get() * (may_go_on ? kTimesOfRun : 1)};
  }
  // How long the step may take in all, as far as is known now: the node takes
  // in texts in turns, so that those which come after it delay it too. It gets
  // no more for others that were late meanwhile. Nothing where the node had not
  // taken in a text yet, and now does.
  std::optional<Duration> Limit(const Step& step) const {
    MutexLock lock(mu_);
    const int64_t num_beside = NumBeside(step);
    if (num_beside > kFewTokens && step.seconds_per_token == 0) return {};
    const std::chrono::duration<double> prefill(
        kMargin * static_cast<double>(num_beside) * step.seconds_per_token);
    return step.alone + std::chrono::ceil<Duration>(std::min(
                            std::chrono::duration<double>(kLongest), prefill));
  }

  // The step was answered, and so many tokens of the text were computed.
  void Answered(const Step& step, int num_computed, double compute_seconds,
                Duration took) {
    MutexLock lock(mu_);
    num_ended_ += step.num_appended;
    if (num_computed <= kFewTokens) {
      if (!step.is_text()) limit_.Answered(took);
      return;
    }
    const double rate = std::max(compute_seconds, 0.0) / num_computed;
    seconds_per_token_ =
        seconds_per_token_ == 0 ? rate : (seconds_per_token_ * 3 + rate) / 4;
  }
  // It was given up at its limit. Those that were under way together raise it
  // once.
  void Late(const Step& step, Duration took) {
    MutexLock lock(mu_);
    if (step.is_text()) {
      const std::chrono::duration<double> seconds = took;
      seconds_per_token_ =
          std::max(seconds_per_token_,
                   seconds.count() / static_cast<double>(NumBeside(step)));
    } else {
      limit_.Answered(took);
    }
    num_ended_ += step.num_appended;
  }
  // It ended otherwise, which says nothing of its pace.
  void Failed(const Step& step) {
    MutexLock lock(mu_);
    num_ended_ += step.num_appended;
  }

 private:
  static constexpr int kMargin = 4;
  // What the verifier goes on with takes some 0.2 s (RunLength), and longer
  // beside others.
  static constexpr int kTimesOfRun = 4;
  static constexpr int kFewTokens = 32;  // what a round appends, and more
  static constexpr std::chrono::hours kLongest{1};

  // Tokens that the node had to take in since the step was sent, its own too.
  int64_t NumBeside(const Step& step) const ABSL_SHARED_LOCKS_REQUIRED(mu_) {
    return num_begun_ - step.num_ended_before;
  }

  mutable Mutex mu_;
  FailureLimit limit_{std::chrono::milliseconds(250)};
  // Tokens of all steps that were sent, and of those that have ended.
  int64_t num_begun_ ABSL_GUARDED_BY(mu_) = 0;
  int64_t num_ended_ ABSL_GUARDED_BY(mu_) = 0;
  double seconds_per_token_ ABSL_GUARDED_BY(mu_) = 0;  // 0: not known yet
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_STEP_PACE_H_
