// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_MISTAKEN_CLIENTS_H_
#define OUTRIDER_TESTS_SIMULATION_MISTAKEN_CLIENTS_H_

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "coordinator/round/draft_client.h"
#include "coordinator/round/session.h"
#include "coordinator/round/verify_client.h"
#include "core/base/task.h"
#include "tests/simulation/cluster.h"
#include "tests/simulation/simulated_pool.h"

namespace outrider::testing {

// Writes down what a round asks for and gets; some of it is lost or changed.
class HastyDrafts final : public DraftClient {
 public:
  HastyDrafts(DraftClient& drafts, Cluster& cluster)
      : drafts_(drafts), cluster_(cluster) {}
  Task<absl::StatusOr<ProposedDraft>> Propose(Session& session,
                                              int num_tokens) override {
    cluster_.watches[session.id()].num_asked = num_tokens;
    auto proposed = co_await drafts_.Propose(session, num_tokens);
    cluster_.watches[session.id()].Proposed();
    if (!proposed.ok()) co_return proposed;
    if (cluster_.mistake == Mistake::kDropsDraftsByToken &&
        proposed->draft.length() > 0 && proposed->draft.tokens[0] == 0) {
      proposed->draft = Draft::None(session.length());
    }
    if (cluster_.mistake == Mistake::kKeepsOutcomes) {
      UseOldOutcome(session, *proposed);
    }
    co_return proposed;
  }
  void DraftAhead(Session& session, const Draft& in_flight) override {
    drafts_.DraftAhead(session, in_flight);
  }
  void Learn(const RoundStats& round) override { drafts_.Learn(round); }

 private:
  // Drafts by an old outcome where there is none, as at another drafter.
  void UseOldOutcome(const Session& session, ProposedDraft& proposed) {
    int64_t num_moves = 0;
    for (SimulatedPool* const pool : cluster_.pools) {
      for (const auto& count : pool->moves().of_drafters) num_moves += count;
    }
    if (proposed.ahead.outcome == AheadStats::Outcome::kHit) {
      old_ = proposed.draft;
      num_moves_ = num_moves;
    } else if (num_moves > num_moves_ && proposed.draft.length() == 0 &&
               old_.length() <= session.MaxDraftLength()) {
      proposed.draft = std::exchange(old_, {});
      proposed.draft.start = session.length();
    }
  }

  DraftClient& drafts_;
  Cluster& cluster_;
  Draft old_ = {};
  int64_t num_moves_ = 0;  // when it came
};

// Scores a round once more where nothing of it was accepted.
class RestlessScore final : public VerifyClient {
 public:
  RestlessScore(VerifyClient& verifier, Mistake mistake)
      : verifier_(verifier), mistake_(mistake) {}
  int MostDrafts(const Session& session) const override {
    return verifier_.MostDrafts(session);
  }
  Task<absl::StatusOr<ScoredDraft>> Score(Session& session,
                                          Draft& draft) override {
    auto scored = co_await verifier_.Score(session, draft);
    if (mistake_ == Mistake::kRedoesRefusals && scored.ok() &&
        draft.length() > 0 && scored->score.verdict.has_value() &&
        scored->score.verdict->num_accepted == 0) {
      co_return co_await verifier_.Score(session, draft);
    }
    co_return scored;
  }

 private:
  VerifyClient& verifier_;
  const Mistake mistake_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_MISTAKEN_CLIENTS_H_
