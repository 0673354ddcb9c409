// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_RUN_LENGTH_H_
#define OUTRIDER_COORDINATOR_CONTROL_RUN_LENGTH_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>

#include "coordinator/control/fading_mean.h"
#include "core/wire/round_stats.h"

namespace outrider {

// How many tokens a call without drafts lets the verifier draw: plain decoding
// on its side, for which the call's own time, the network's above all, is spent
// once. It is chosen from past rounds alone, and so exact. Thread-compatible.
class RunLength {
 public:
  // A call that took in no text to speak of.
  struct Call {
    RoundStats::Link link = {};
    int num_drafts = 0;
    int num_passes = 1;
  };

  virtual ~RunLength() = default;
  // Never less than 1.
  virtual int Next() const = 0;
  virtual void Learn(const Call& /*call*/) {}
};

// Always so many.
class FixedRunLength final : public RunLength {
 public:
  explicit FixedRunLength(int num_tokens) : num_tokens_(num_tokens) {}
  int Next() const override { return num_tokens_; }

 private:
  const int num_tokens_;
};

// So many that what calls take beside the verifier's computing is little for
// each token; but a client sees them all at once, so that they are not made to
// wait long for each other. Passes are held for sessions near their verifier
// (docs/adr/0006), so that several decode in step, and control tries drafts
// with all of them together: there runs would bring them out of step for
// little.
class MeasuredRunLength final : public RunLength {
 public:
  static constexpr int kDefaultMost = 8;

  // It is from 1 to `most`. `has_company` says whether there are several;
  // empty: no.
  explicit MeasuredRunLength(int most, std::function<bool()> has_company = {})
      : most_(most), has_company_(std::move(has_company)) {}

  int Next() const override {
    if (num_calls_ == 0) return 1;
    // A pass over drafts takes longer, and stands in until another was seen.
    const FadingMean& seen = plain_pass_.weight > 0 ? plain_pass_ : draft_pass_;
    const double pass = std::max(seen.value, kLeastSeconds);
    if (has_company_ && has_company_()) {
      // In a run it waits for others before each pass: the first calls, and one
      // in some later, are of one token, and tell how far the verifier is.
      const bool measures =
          num_calls_ < calls_.size() || num_calls_ % calls_.size() == 0;
      if (measures || LeastCall() < kNearbyShare * pass) return 1;
    }
    const double enough = std::ceil(LeastCall() / (kShareOfCall * pass));
    const double smooth = std::floor(kMostSeconds / pass);
    return static_cast<int>(
        std::clamp(std::min(enough, smooth), 1.0, static_cast<double>(most_)));
  }

  void Learn(const Call& call) override {
    const double compute = std::max(0.0, call.link.compute_seconds);
    FadingMean& pass = call.num_drafts == 0 ? plain_pass_ : draft_pass_;
    pass.Fade(kFade);
    pass.Add(compute / call.num_passes);
    calls_[num_calls_++ % calls_.size()] =
        std::max(0.0, call.link.call_seconds - compute);
  }

 private:
  static constexpr double kShareOfCall = 0.02;  // of a token's time
  static constexpr double kMostSeconds = 0.2;
  static constexpr double kNearbyShare = 1.0 / 3;  // of a pass
  static constexpr double kLeastSeconds = 1e-6;
  static constexpr double kFade = 1 - 1.0 / 8;  // a mean over some 8 passes

  // The others waited for passes as well, which runs do not spare them.
  double LeastCall() const {
    const auto num_known = std::min<size_t>(num_calls_, calls_.size());
    return *std::min_element(calls_.begin(), calls_.begin() + num_known);
  }

  const int most_;
  const std::function<bool()> has_company_;
  size_t num_calls_ = 0;
  std::array<double, 8> calls_ = {};  // less what the verifier computed
  FadingMean plain_pass_ = {};
  FadingMean draft_pass_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_RUN_LENGTH_H_
