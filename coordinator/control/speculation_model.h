// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_CONTROL_SPECULATION_MODEL_H_
#define OUTRIDER_COORDINATOR_CONTROL_SPECULATION_MODEL_H_

#include <array>
#include <optional>

#include "coordinator/control/ahead_times.h"
#include "coordinator/control/draft_length.h"
#include "coordinator/control/draft_places.h"
#include "coordinator/control/fading_mean.h"
#include "coordinator/control/pass_curve.h"
#include "coordinator/control/plain_rounds.h"
#include "core/wire/round_stats.h"

namespace outrider {

// What rounds with K drafts give and take, by past rounds: how often a draft is
// made and stands at each place, for each stop, and how long calls and nodes
// took. All of it fades. Thread-compatible.
class SpeculationModel {
 public:
  static constexpr int kMostDrafts = DraftLength::kMostDrafts;

  // What a round was part of.
  struct Circumstances {
    DraftLength asked = {};
    int num_sessions = 1;        // at work, whose rounds are learned as well
    bool is_ahead = false;       // drafts are asked for ahead where that can be
    bool drafts_ahead = false;   // those of the next round were
    bool follows_drafts = true;  // the session's last round had some
  };

  // Chooses among so many of the stops, from the first one on.
  explicit SpeculationModel(int num_stops = DraftLength::kNumStops)
      : num_stops_(num_stops) {}

  // A round that went its ordinary way: no prompt, no miss, no failure.
  void Learn(const RoundStats& round, const Circumstances& circumstances);
  // What was accepted, of a round whose times say nothing. Where the drafter
  // says how sure it was, also what would have been with other stops.
  void LearnAcceptance(const RoundStats& round, const DraftLength& asked);
  // What drafts took was seen long ago, and may have changed.
  void DoubtDrafts();

  // Whether it has seen both drafts and verifications.
  bool has_learned() const {
    return draft_calls_.weight > 0 && passes_.has_learned();
  }

  // Tokens that a round with so many drafts commits on average, and its time;
  // known once it has learned.
  double Tokens(const DraftLength& length) const;
  double Seconds(const DraftLength& length) const;
  // How many of the drafts are made on average.
  double Made(const DraftLength& length) const {
    return places_[length.stop].Made(length.num_drafts);
  }
  // How often a draft stands once those before it do.
  double Acceptance() const { return places_[0].Tokens(1) - 1; }
  double TokensPerSecond(const DraftLength& length) const {
    return Tokens(length) / Seconds(length);
  }
  // How many times as long a round would take by the other way, in turn or
  // ahead, whose own model has what is known of drafts ahead where this is in
  // turn; nothing where that is not known, or no drafts are asked for.
  std::optional<double> OtherWay(const DraftLength& length, bool is_ahead,
                                 const SpeculationModel& other) const;
  // The same without drafts where each pass has a call of its own.
  double TokensPerSecondOfPasses() const;
  // The length of `least` drafts and more with the most tokens a second; the
  // fewest among equals, and of the earliest stop.
  DraftLength Best(int least, int most) const;

 private:
  using Mean = FadingMean;

  void LearnTimes(const RoundStats& round, const Circumstances& circumstances);
  void LearnPass(const RoundStats& round, int num_sessions);
  void LearnVerifyCall(bool has_drafts, bool tells_network, double seconds);

  // What the verifier computes, on average: longer than it would take for as
  // many rows as there are on average, where the passes are a staircase.
  double PassSeconds(const DraftLength& length) const;
  double PlainPassSeconds() const;
  double Seconds(const DraftLength& length, double pass_seconds) const;
  double InTurnSeconds(const DraftLength& length, double verify_seconds) const;
  double AheadSeconds(const DraftLength& length, double verify_seconds,
                      double hits, const AheadTimes& ahead) const;
  double VerifySeconds(const DraftLength& length, double pass_seconds) const;
  double QueueOfMisses(double misses) const;  // beside a pass, as queue_

  // Whether enough rounds of late said how sure the drafter was.
  bool knows_stops() const { return told_.weight >= 8 && told_.value > 0.5; }

  int num_stops_;
  std::array<DraftPlaces, DraftLength::kNumStops> places_ = {};  // by stop
  Mean told_ = {};  // how sure the drafter was: how many rounds said it
  PlainRounds plain_ = {};
  Mean draft_calls_ = {};   // less what the drafter computed
  Mean draft_tokens_ = {};  // what it computed, a pass of its own
  // Less what the verifier computed and its queue, where it tells that one:
  // the network, which is another one for runs of several passes.
  Mean verify_calls_ = {};
  Mean plain_calls_ = {};
  // Under load each user waits for the passes of others: what a queue takes
  // beside the passes that follow it, whoever drafts how much.
  FadingQuotient queue_ = {};
  // They are counted of rounds whose drafts were asked for ahead. Those that
  // hit are back at once, in step; one that misses comes while their pass runs,
  // and so do they while its does. So the queue is as long as these are many.
  Mean misses_ = {};
  PassCurve passes_ = {};  // what that computed, by the session's rows
  Mean rest_ = {};         // of a round, beside its calls
  AheadTimes ahead_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_CONTROL_SPECULATION_MODEL_H_
