// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_AHEAD_CHOICE_H_
#define OUTRIDER_COORDINATOR_PEERS_AHEAD_CHOICE_H_

#include <algorithm>
#include <array>

namespace outrider {

// Whether drafts are asked for ahead of the verdict: as rounds have been
// faster, by the time for a token of those that they commit on average. The
// other way is tried now and then, for a block of rounds, and costs 1 % of the
// time. All sessions go one way together, as what they cost each other shows
// only so: nodes may share processors, and sessions that hit come back at other
// times than those that do not. Follows from past rounds alone. Thread-
// compatible.
class AheadChoice {
 public:
  bool asks() const { return asks_; }

  // A round that drafted. `was_ahead`: its drafts were asked for ahead;
  // `is_ahead`: the next one's were, while it was verified.
  void Learn(bool was_ahead, bool is_ahead, double seconds_per_token) {
    if (was_ahead != is_ahead) return;  // from one way to the other
    ways_[is_ahead ? 1 : 0].Add(seconds_per_token);
    if (is_ahead != asks_) return;
    ++num_rounds_;
    if (++num_in_block_ < kBlock) return;
    const bool is_better = own().value <= other().value;
    if (other().weight == 0 || !is_better) {
      Turn();
    } else if (IsTimeToTry()) {
      Turn();
      // What it was is less than what it will show.
      own().weight = std::min(own().weight, kOldWeight);
      num_rounds_ = 0;
    }
  }

 private:
  static constexpr int kBlock = 32;
  static constexpr double kTrialShare = 0.01;
  // What is nearly as fast costs next to nothing to try.
  static constexpr double kLeastLoss = 0.02;
  static constexpr double kMostLoss = 1;
  static constexpr double kMostWeight = 96;
  static constexpr double kOldWeight = 16;
  // A round that stood still says little of its way.
  static constexpr double kMostOfMean = 3;

  // Mean seconds for a token.
  struct Way {
    double weight = 0;
    double value = 0;
    void Add(double observed) {
      if (weight >= kOldWeight) {
        observed = std::min(observed, kMostOfMean * value);
      }
      weight = std::min(weight, kMostWeight) + 1;
      value += (observed - value) / weight;
    }
  };

  Way& own() { return ways_[asks_ ? 1 : 0]; }
  Way& other() { return ways_[asks_ ? 0 : 1]; }
  void Turn() {
    asks_ = !asks_;
    num_in_block_ = 0;
  }
  bool IsTimeToTry() {
    const double loss =
        std::clamp(other().value / own().value - 1, kLeastLoss, kMostLoss);
    return kTrialShare * num_rounds_ >= kBlock * loss;
  }

  std::array<Way, 2> ways_ = {};  // in turn, ahead
  bool asks_ = true;
  int num_in_block_ = 0;
  int num_rounds_ = 0;  // since the last trial began
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_AHEAD_CHOICE_H_
