// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_PEERS_PLAIN_ROUNDS_H_
#define OUTRIDER_COORDINATOR_PEERS_PLAIN_ROUNDS_H_

#include "coordinator/peers/fade.h"
#include "coordinator/peers/fading_mean.h"
#include "core/wire/round_stats.h"

namespace outrider {

// What rounds give that ask for no drafts: in one pass of the verifier, with
// drafts that were looked up for it all the same, or in several, where it goes
// on by itself. Thread-compatible.
class PlainRounds {
 public:
  void Learn(const RoundStats& round) {
    for (FadingQuotient* of_pass : {&tokens_, &drafts_}) {
      of_pass->Fade(kTokensFade);
    }
    tokens_.Add(round.num_committed(), round.num_passes());
    drafts_.Add(round.num_drafted, round.num_passes());
  }

  // Any round tells how far the network is, one with drafts as well, and so how
  // many passes one without would have now.
  void LearnRun(const RoundStats& round) {
    passes_.Fade(kPassesFade);
    passes_.Add(round.next_run);
  }

  // These are means of a round.
  double Tokens() const {
    return Passes() * (tokens_.divisor.weight > 0 ? tokens_.Value() : 1);
  }
  double Passes() const { return passes_.weight > 0 ? passes_.value : 1; }
  // This is one of a pass.
  double Drafts() const { return drafts_.Value(); }

 private:
  // How many passes a round has follows the network, what they give the text.
  static constexpr double kTokensFade = FadeOver(100);
  static constexpr double kPassesFade = FadeOver(16);

  FadingMean passes_ = {};
  FadingQuotient tokens_ = {};
  FadingQuotient drafts_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_PEERS_PLAIN_ROUNDS_H_
