// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_AHEAD_CHOICE_H_
#define OUTRIDER_COORDINATOR_PEERS_AHEAD_CHOICE_H_

#include <algorithm>
#include <array>

namespace outrider {

// Whether drafts are asked for ahead of the verdict: as rounds have been
// faster, by the time for a token of those that they commit on average. The
// other way is tried now and then, for a block of rounds, and costs half a
// percent of the time. All sessions go one way together, as what they cost each
// other shows only so: nodes may share processors, sessions that hit come back
// at other times than those that do not, and a drafter that is busy with
// guesses drafts later for those who wait. Follows from past rounds alone.
// Thread-compatible.
class AheadChoice {
 public:
  bool asks() const { return asks_; }

  // A round that went the way in force from its beginning to its end, with so
  // many sessions at work.
  void Learn(double seconds_per_token, int num_sessions) {
    ++num_rounds_;
    ++num_in_block_;
    // Sessions that have turned fall into a new step first.
    const int num_unsettled = kUnsettled * num_sessions;
    if (num_in_block_ <= num_unsettled) return;
    own().Add(seconds_per_token);
    const int block = num_unsettled + std::max(kBlock, kOfEach * num_sessions);
    if (num_in_block_ < block) return;
    const bool is_better = own().value <= other().value;
    if (other().weight == 0 || !is_better) {
      Turn();
    } else if (IsTimeToTry(block)) {
      Turn();
      // What it was is less than what it will show.
      own().weight = std::min(own().weight, kOldWeight);
      num_rounds_ = 0;
    }
  }

 private:
  // Rounds of a block that count: so many, and of each session so many.
  static constexpr int kBlock = 32;
  static constexpr int kOfEach = 8;
  static constexpr int kUnsettled = 2;  // of each session
  static constexpr double kTrialShare = 0.005;
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
  bool IsTimeToTry(int block) {
    const double loss =
        std::clamp(other().value / own().value - 1, kLeastLoss, kMostLoss);
    return kTrialShare * num_rounds_ >= block * loss;
  }

  std::array<Way, 2> ways_ = {};  // in turn, ahead
  bool asks_ = false;
  int num_in_block_ = 0;
  int num_rounds_ = 0;  // since the last trial began
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_AHEAD_CHOICE_H_
