// SPDX-License-Identifier: Apache-2.0
#include "coordinator/control/speculation_model.h"

#include <algorithm>
#include <cmath>

#include "coordinator/control/fade.h"

namespace outrider {
namespace {

// What is left of an observation's weight a round later. A mean of times is
// over some 16 rounds of each session then, one of what plain rounds give over
// some 100 of all.
constexpr double kTimesRounds = 16;
constexpr double kTokensFade = FadeOver(100);
// What is doubted counts as so many rounds, beside those to come.
constexpr double kRoundsInDoubt = 2;
// A queue is not foretold by more than so many times what it was, nor by a
// share of misses that is little more than chance.
constexpr double kMostChangeOfQueue = 2;
constexpr double kLeastMisses = 0.05;

// What would have come of a round's drafts, had the drafter ended them at
// that stop or a later one; no drafts where that is not known.
DraftPlaces::Drafts EndedAt(int stop, const RoundStats& round,
                            const DraftLength& asked) {
  const DraftPlaces::Drafts seen = {.num_asked = asked.num_drafts,
                                    .num_made = round.num_drafted,
                                    .num_accepted = round.num_accepted};
  if (stop == asked.stop || round.num_drafted == 0) return seen;
  if (round.confidences.empty()) return {};
  double probability = 1;
  int num_made = 0;
  for (const float confidence : round.confidences) {
    probability *= confidence;
    ++num_made;
    if (probability < DraftLength::kStops[stop]) break;
  }
  return {.num_asked = asked.num_drafts,
          .num_made = num_made,
          .num_accepted = std::min(num_made, round.num_accepted)};
}

}  // namespace

void SpeculationModel::Learn(const RoundStats& round,
                             const Circumstances& circumstances) {
  LearnAcceptance(round, circumstances.asked);
  ahead_.Learn(round, {.is_ahead = circumstances.is_ahead,
                       .drafts_ahead = circumstances.drafts_ahead,
                       .num_sessions = circumstances.num_sessions});
  LearnTimes(round, circumstances);
}

void SpeculationModel::LearnAcceptance(const RoundStats& round,
                                       const DraftLength& asked) {
  plain_.LearnRun(round);
  if (asked.num_drafts == 0) plain_.Learn(round);
  if (asked.num_drafts > 0 && round.num_drafted > 0) {
    told_.Fade(kTokensFade);
    told_.Add(round.confidences.empty() ? 0 : 1);
  }
  for (int stop = 0; stop < num_stops_; ++stop) {
    if (stop < asked.stop && round.num_drafted > 0) {
      places_[stop].LearnFirst(round.num_accepted > 0);
    } else {
      places_[stop].Learn(EndedAt(stop, round, asked));
    }
  }
}

void SpeculationModel::LearnTimes(const RoundStats& round,
                                  const Circumstances& circumstances) {
  const double fade = FadeOver(kTimesRounds, circumstances.num_sessions);
  for (Mean* time : {&draft_calls_, &draft_tokens_, &verify_calls_,
                     &plain_calls_, &rest_, &misses_}) {
    time->Fade(fade);
  }
  queue_.Fade(fade);
  const AheadStats::Outcome ahead = round.ahead.outcome;
  if (ahead != AheadStats::Outcome::kNotAsked) {
    misses_.Add(ahead == AheadStats::Outcome::kMiss ? 1 : 0);
  }
  const RoundStats::Link& draft = round.drafter;
  // A drafter that was left alone drafts the first time for longer: it has to
  // take in what came since, and its caches are another's.
  const bool is_usual =
      circumstances.follows_drafts || draft_calls_.weight == 0;
  if (circumstances.asked.num_drafts > 0 && is_usual &&
      ahead != AheadStats::Outcome::kHit) {
    draft_calls_.Add(draft.call_seconds - draft.compute_seconds -
                     round.ahead.wait_seconds);
    draft_tokens_.Add(draft.compute_seconds / std::max(1, round.num_drafted));
  }
  const RoundStats::Link& verify = round.verifier;
  // A run waits for the passes of others, and not only for the network.
  const bool tells_network =
      round.num_more == 0 || circumstances.num_sessions == 1;
  LearnVerifyCall(
      round.num_by_drafter() > 0, tells_network,
      verify.call_seconds - verify.compute_seconds - verify.queue_seconds);
  LearnPass(round, circumstances.num_sessions);
  rest_.Add(round.round_seconds - draft.call_seconds - verify.call_seconds);
}

void SpeculationModel::DoubtDrafts() {
  for (Mean* time : {&draft_calls_, &draft_tokens_, &verify_calls_}) {
    time->KeepAtMost(kRoundsInDoubt);
  }
  ahead_.KeepTimesAtMost(kRoundsInDoubt);
}

void SpeculationModel::LearnPass(const RoundStats& round, int num_sessions) {
  const RoundStats::Link& verify = round.verifier;
  const int num_rows = round.num_drafted + 1;
  const double seconds = verify.compute_seconds / round.num_passes();
  // An older verifier does not tell.
  const double sharing =
      verify.own_seconds > 0
          ? std::max(1.0, verify.compute_seconds / verify.own_seconds)
          : 1;
  queue_.Add(verify.queue_seconds, seconds);
  passes_.Learn(num_rows, sharing, seconds, num_sessions);
}

void SpeculationModel::LearnVerifyCall(bool has_drafts, bool tells_network,
                                       double seconds) {
  Mean& own = has_drafts ? verify_calls_ : plain_calls_;
  Mean& other = has_drafts ? plain_calls_ : verify_calls_;
  const double before = own.value;
  own.Add(seconds);
  // A network that changes, changes for both: the one that is seen often tells
  // the one that is not.
  if (tells_network && own.weight > 1 && own.weight > other.weight)
    other.value += own.value - before;
}

double SpeculationModel::Tokens(const DraftLength& length) const {
  if (length.num_drafts == 0) return plain_.Passes() * plain_.Tokens();
  return places_[length.stop].Tokens(length.num_drafts);
}

double SpeculationModel::Seconds(const DraftLength& length) const {
  return Seconds(length, PassSeconds(length));
}

double SpeculationModel::TokensPerSecondOfPasses() const {
  return plain_.Tokens() / Seconds({}, PlainPassSeconds());
}

double SpeculationModel::PlainPassSeconds() const {
  const int whole = static_cast<int>(plain_.Drafts());
  return passes_.Seconds(whole + 1) +
         (plain_.Drafts() - whole) *
             (passes_.Seconds(whole + 2) - passes_.Seconds(whole + 1));
}

double SpeculationModel::PassSeconds(const DraftLength& length) const {
  if (length.num_drafts == 0) return plain_.Passes() * PlainPassSeconds();
  double seconds = passes_.Seconds(1);
  for (int k = 1; k <= length.num_drafts; ++k) {
    seconds += places_[length.stop].MakesAtLeast(k) *
               (passes_.Seconds(k + 1) - passes_.Seconds(k));
  }
  return seconds;
}

double SpeculationModel::Seconds(const DraftLength& length,
                                 double pass_seconds) const {
  const double verify = VerifySeconds(length, pass_seconds);
  if (length.num_drafts == 0) return std::max(1e-9, rest_.value + verify);
  const double in_turn = InTurnSeconds(length, verify);
  if (!ahead_.was_asked()) return std::max(1e-9, in_turn);
  const double hits = ahead_.HitShare(places_[length.stop], length.num_drafts);
  const double queue =
      (QueueOfMisses(1 - hits) - queue_.Value()) * pass_seconds;
  const double ahead = AheadSeconds(length, verify + queue, hits, ahead_);
  return std::max(1e-9, in_turn + ahead_.asked_share() * (ahead - in_turn));
}

double SpeculationModel::InTurnSeconds(const DraftLength& length,
                                       double verify_seconds) const {
  return rest_.value + verify_seconds + draft_calls_.value +
         Made(length) * draft_tokens_.value;
}

double SpeculationModel::AheadSeconds(const DraftLength& length,
                                      double verify_seconds, double hits,
                                      const AheadTimes& ahead) const {
  const double late = ahead.LateSeconds(places_[length.stop], length.num_drafts,
                                        verify_seconds);
  const double drafting =
      draft_calls_.value + Made(length) * draft_tokens_.value;
  return rest_.value + verify_seconds + late + (1 - hits) * drafting;
}

std::optional<double> SpeculationModel::OtherWay(
    const DraftLength& length, bool is_ahead,
    const SpeculationModel& other) const {
  const AheadTimes& times = is_ahead ? ahead_ : other.ahead_;
  if (length.num_drafts == 0 || !times.was_asked()) return std::nullopt;
  const double verify = VerifySeconds(length, PassSeconds(length));
  const double in_turn = std::max(1e-9, InTurnSeconds(length, verify));
  const double hits = times.HitShare(places_[length.stop], length.num_drafts);
  const double ahead =
      std::max(1e-9, AheadSeconds(length, verify, hits, times));
  return is_ahead ? in_turn / ahead : ahead / in_turn;
}

double SpeculationModel::VerifySeconds(const DraftLength& length,
                                       double pass_seconds) const {
  const bool drafts = length.num_drafts > 0;
  const Mean& calls =
      drafts || plain_calls_.weight == 0 ? verify_calls_ : plain_calls_;
  const double one_pass = drafts ? pass_seconds : PlainPassSeconds();
  return pass_seconds + queue_.Value() * one_pass + std::max(0.0, calls.value);
}

double SpeculationModel::QueueOfMisses(double misses) const {
  if (misses_.weight == 0) return queue_.Value();
  const double change = misses / std::max(misses_.value, kLeastMisses);
  return queue_.Value() *
         std::clamp(change, 1 / kMostChangeOfQueue, kMostChangeOfQueue);
}

DraftLength SpeculationModel::Best(int least, int most) const {
  DraftLength best = {.num_drafts = least};
  double rate = TokensPerSecond(best);
  for (int stop = 0; stop < num_stops_; ++stop) {
    if (stop > 0 && !knows_stops()) break;
    double pass_seconds = passes_.Seconds(1);
    for (int k = 1; k <= std::min(most, kMostDrafts); ++k) {
      pass_seconds += places_[stop].MakesAtLeast(k) *
                      (passes_.Seconds(k + 1) - passes_.Seconds(k));
      const DraftLength length = {.num_drafts = k, .stop = stop};
      if (k < least) continue;
      const double other = Tokens(length) / Seconds(length, pass_seconds);
      if (other > rate) {
        best = length;
        rate = other;
      }
    }
  }
  return best;
}

}  // namespace outrider
