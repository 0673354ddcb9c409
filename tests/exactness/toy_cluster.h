// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_TOY_CLUSTER_H_
#define OUTRIDER_TESTS_EXACTNESS_TOY_CLUSTER_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/peers/lookup_draft_client.h"
#include "coordinator/peers/node_draft_client.h"
#include "coordinator/peers/node_verify_client.h"
#include "coordinator/round/draft_length_policy.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "core/drafting/ngram_strategy.h"
#include "core/testing/enumerating_source.h"
#include "core/testing/table_lm.h"
#include "tests/exactness/cluster_config.h"
#include "tests/exactness/outcomes_by_the_book.h"
#include "tests/exactness/toy_ahead.h"
#include "tests/exactness/toy_model.h"
#include "tests/support/in_process_stubs.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {

// The production round on toy models, without network or threads: one session,
// one drafter, one verifier. `chance` feeds both nodes and the coordinator.
class ToyCluster {
 public:
  ToyCluster(const ClusterConfig& config, const ToyModel& model,
             RandomSource& chance);
  // Has the coins that every process makes for itself in production.
  ToyCluster(const ClusterConfig& config, const ToyModel& model, uint64_t seed);
  ~ToyCluster();

  absl::StatusOr<Verdict> Round();
  // The round of SpeculativeDecoder.
  absl::StatusOr<Verdict> DecoderRound();

  Session& session() { return *session_; }
  int num_rounds() const { return view_.round_index; }
  // Whether this is the round that only takes in the prompt.
  bool IsFirstRound() const {
    return config_.has_first_round && num_rounds() == 0;
  }
  const RoundView& view() const { return view_; }
  // What the last round left, if SpeculativeDecoder ran it and did not fail.
  const RoundStats& stats() const { return stats_; }
  // All that rounds to come depend on, beside text and caches. Where drafts are
  // made ahead or looked up: what rounds had so far, as who drafts follows from
  // it, and the drafts that are there.
  std::vector<int64_t> DraftersState() const;
  DraftClient& draft_client() { return *drafter_; }
  InProcessDraftStub& draft_stub() { return *draft_stub_; }
  InProcessVerifyStub& verify_stub() { return *verify_stub_; }
  DraftNode& drafter() { return *drafter_node_; }
  VerifyNode& verifier() { return *verifier_node_; }
  // Replaces the drafter's process: an empty cache, no incarnation.
  void RestartDrafter();
  // The other of two verifiers takes the calls from now on, with whatever it
  // has of the session.
  void MoveVerifier();
  const VerifyNode* other_verifier() const { return other_verifier_.get(); }

 private:
  class TappedDrafts;
  class TappedRule;
  class TappedStub;
  class ScriptedLength;

  ToyCluster(const ClusterConfig& config, const ToyModel& model,
             std::unique_ptr<RandomSource> coins, uint64_t seed);
  std::unique_ptr<DraftNode> NewDrafter();
  // What drafts are asked of, once the stub is there.
  DraftStub& DraftCalls();
  std::unique_ptr<VerifyNode> NewVerifier();
  // The test's coins for a node; empty where it flips real ones.
  std::function<std::unique_ptr<RandomSource>(uint64_t)> CoinFactory();
  const ClusterConfig& config_;
  const ToyModel& model_;
  const std::unique_ptr<RandomSource> coins_;  // null: production's
  std::unique_ptr<DraftNode> drafter_node_;
  std::unique_ptr<VerifyNode> verifier_node_;
  std::unique_ptr<VerifyNode> other_verifier_;  // null before the first move
  std::unique_ptr<InProcessDraftStub> draft_stub_;
  std::unique_ptr<InProcessVerifyStub> verify_stub_;
  std::unique_ptr<OutcomesByTheBook> by_the_book_;
  std::unique_ptr<TappedStub> tapped_stub_;
  std::unique_ptr<NodeDraftClient> node_drafter_;
  std::unique_ptr<ToyAhead> ahead_;            // in front of it
  std::unique_ptr<LookupDraftClient> lookup_;  // in front of that
  std::unique_ptr<DraftClient> other_drafts_;  // and that
  DraftClient* drafter_ = nullptr;             // whichever the config wants
  std::unique_ptr<Session> session_;
  // What the last round had.
  RoundView view_;
  Draft draft_;
  std::optional<Verdict> verdict_;
  RoundStats stats_;
  LogitRows rows_;
  std::vector<int64_t> history_;
  std::vector<OutcomeDraft> outcomes_;  // of the last call that asked for some
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_TOY_CLUSTER_H_
