// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_PLAIN_ROUNDS_H_
#define OUTRIDER_COORDINATOR_CONTROL_PLAIN_ROUNDS_H_

#include <algorithm>

#include "coordinator/control/fade.h"
#include "coordinator/control/fading_mean.h"
#include "core/wire/round_stats.h"

namespace outrider {

// What rounds give that ask for no drafts: in one pass of the verifier, with
// drafts that were looked up for it all the same, or in several, where it goes
// on by itself. Thread-compatible.
class PlainRounds {
 public:
  void Learn(const RoundStats& round) {
    given_.Fade(kTokensFade);
    given_.Add(round.num_passes(), round.next_run);
    for (FadingQuotient* of_pass : {&tokens_, &drafts_}) {
      of_pass->Fade(kTokensFade);
    }
    tokens_.Add(round.num_committed(), round.num_passes());
    drafts_.Add(round.num_drafted, round.num_passes());
  }

  // Any round tells how far the network is, one with drafts as well, and so how
  // many passes one without would have now.
  void LearnRun(const RoundStats& round) {
    run_.Fade(kPassesFade);
    run_.Add(round.next_run);
  }

  // How many passes a round has on average. Where texts end or a verifier takes
  // fewer, it gives less than it is asked for.
  double Passes() const {
    const double share =
        given_.divisor.weight > 0 ? std::min(1.0, given_.Value()) : 1;
    return std::max(1.0, share * run_.value);
  }
  // These are means of a pass.
  double Tokens() const {
    return tokens_.divisor.weight > 0 ? tokens_.Value() : 1;
  }
  double Drafts() const { return drafts_.Value(); }

 private:
  // How many passes a round has follows the network, what they give the text.
  static constexpr double kTokensFade = FadeOver(100);
  static constexpr double kPassesFade = FadeOver(16);

  FadingMean run_ = {};
  FadingQuotient given_ = {};
  FadingQuotient tokens_ = {};
  FadingQuotient drafts_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_PLAIN_ROUNDS_H_
