// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_SPECULATION_MODEL_H_
#define OUTRIDER_COORDINATOR_PEERS_SPECULATION_MODEL_H_

#include <algorithm>
#include <array>

#include "coordinator/peers/fading_mean.h"
#include "coordinator/peers/pass_curve.h"
#include "core/wire/round_stats.h"

namespace outrider {

// What rounds with K drafts give and take, as far as past rounds tell: how
// often a draft stands at each place, once those before it did, and how long
// calls and nodes took. All of it fades, as texts and loads change.
// Thread-compatible.
class SpeculationModel {
 public:
  static constexpr int kMostDrafts = PassCurve::kMostRows - 1;

  // What a round was part of.
  struct Circumstances {
    int num_asked = 0;      // drafts
    int num_sessions = 1;   // at work, whose rounds are learned as well
    bool is_ahead = false;  // drafts are asked for ahead where that can be
    bool is_trial = false;
  };

  // A round that went its ordinary way: no prompt, no miss, no failure.
  void Learn(const RoundStats& round, const Circumstances& circumstances);
  // What was accepted, of a round whose times say nothing.
  void LearnAcceptance(const RoundStats& round, int num_asked);

  // Whether it has seen both drafts and verifications.
  bool has_learned() const {
    return draft_calls_.weight > 0 && passes_.has_learned();
  }

  // Tokens that a round with so many drafts commits on average, and its time;
  // known once it has learned.
  double Tokens(int num_drafts) const {
    if (num_drafts == 0 && plain_tokens_.weight > 0) return plain_tokens_.value;
    return tokens_[std::min(num_drafts, kMostDrafts)];
  }
  double Seconds(int num_drafts) const;
  // How often a draft stands once those before it do.
  double Acceptance() const;
  double TokensPerSecond(int num_drafts) const {
    return Tokens(num_drafts) / Seconds(num_drafts);
  }
  // The number of drafts with the most tokens a second, at least `least`; the
  // fewest among equals.
  int Best(int least, int most) const;

 private:
  using Mean = FadingMean;
  using Slope = FadingSlope;
  using Places = std::array<Mean, kMostDrafts>;
  using Counts = std::array<double, kMostDrafts + 1>;
  // How many places in a row go well on average, of 1, 2 and so on, added to
  // the first of `counts`; what is known of the first place where it was never
  // seen.
  static void CountOn(const Places& places, double first, Counts& counts);
  // Makes room for what the last rounds clearly say else of the first place.
  void ForgetWhatChanged(bool first_stands);
  void LearnTimes(const RoundStats& round, const Circumstances& circumstances);
  void LearnAhead(const RoundStats& round, const Circumstances& circumstances);
  void LearnVerifyCall(bool has_drafts, double seconds);
  void LearnWait(const RoundStats& round);

  // How many of so many drafts are made on average.
  double Made(int num_asked) const {
    return num_made_[std::min(num_asked, kMostDrafts)];
  }
  double DraftSeconds(int num_drafts) const;
  double VerifySeconds(int num_drafts) const;
  // How much later than the verdict drafts made ahead come.
  double LateSeconds(int num_drafts) const;

  Places accepted_ = {};  // by place
  Counts tokens_ = {1};   // follows from accepted_
  // Likewise whether it is made, once those before it are: a drafter may stop
  // where it is not sure.
  Places made_ = {};
  Counts num_made_ = {};  // follows from made_
  // Of rounds that asked for none: what they committed, and the drafts that
  // were looked up for them all the same.
  Mean plain_tokens_ = {};
  Mean plain_drafts_ = {};
  Mean recent_ = {};        // of the first place, over the last rounds alone
  Mean draft_calls_ = {};   // less what the drafter computed
  Mean draft_tokens_ = {};  // what it computed, a pass of its own
  // Less what the verifier computed: the network and, under load, the wait for
  // the pass of others, which is another one where nobody drafts.
  Mean verify_calls_ = {};
  Mean plain_calls_ = {};
  PassCurve passes_ = {};  // what that computed, by the session's rows
  Mean drafts_ = {};       // of a round that drafted
  // A verification's wait, by drafts: under load each user waits for the
  // rows of all. From trials alone, as K changes with the network, too.
  Slope wait_ = {};
  Mean rest_ = {};          // of a round, beside its calls
  Mean asked_ = {};         // share of the rounds that draft
  Mean hits_ = {};          // of those
  Mean ahead_calls_ = {};   // less what the drafter computed
  Mean ahead_tokens_ = {};  // what it computed, a token of all drafts at once
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_SPECULATION_MODEL_H_
