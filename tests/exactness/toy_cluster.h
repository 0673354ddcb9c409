// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_TOY_CLUSTER_H_
#define OUTRIDER_TESTS_EXACTNESS_TOY_CLUSTER_H_

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/draft_length_policy.h"
#include "coordinator/node_draft_client.h"
#include "coordinator/node_verify_client.h"
#include "coordinator/session.h"
#include "coordinator/speculative_decoder.h"
#include "core/sampling/rejection.h"
#include "core/testing/enumerating_source.h"
#include "core/testing/in_process_stubs.h"
#include "core/testing/table_lm.h"
#include "drafter/draft_engine.h"
#include "tests/exactness/toy_model.h"
#include "verifier/verify_engine.h"

namespace outrider::testing {

// What a round looked at and decided, for a test's own rule or policy.
struct RoundView {
  int round_index = 0;           // of the round that comes
  const Draft* draft = nullptr;  // of the last round; null before it
  const Verdict* verdict = nullptr;
  const LogitRows* rows = nullptr;  // of the last Verify
};

// What a test's own rule judges by.
struct JudgeView {
  absl::Span<const TokenId> committed = {};
  const Draft& draft;
  const LogitRows& rows;
  RandomSource& random;
};

class ToyCluster;

// What a test builds into the cluster from outside: mistakes, mostly. All empty
// in the correct engine.
struct Sabotage {
  TableLm::Cut drafter_cut = {};
  TableLm::Cut verifier_cut = {};
  std::function<absl::Status(const VerifyCall&, VerifyReply&)> after_verify =
      {};
  // A draft that the client has accepted, before it is scored and judged.
  std::function<void(Draft&)> alter_draft = {};
  std::function<std::unique_ptr<RandomSource>(RandomSource&)> coins = {};
  std::function<Verdict(const JudgeView&)> judge = {};
  std::function<int(const RoundView&, int k)> draft_length = {};
  // Instead of ToyCluster::DecoderRound.
  std::function<absl::StatusOr<Verdict>(ToyCluster&)> round = {};
};

struct ClusterConfig {
  SamplingParams sampling = {.temperature = 0.8, .top_k = 3};
  int support_size = 0;                  // N; 0: whole rows
  std::vector<int> draft_lengths = {3};  // K by round, over and over
  // Prompt and first token by SpeculativeDecoder::FirstRound.
  bool has_first_round = false;
  int max_length = 64;     // of the session; near it K is cut
  int num_deliveries = 1;  // of every call, same step, same bytes
  std::vector<TokenId> eos_ids = {};
  EnumeratingSource::Reuse reuse = EnumeratingSource::Reuse::kRefuse;
  Sabotage sabotage = {};
};

inline constexpr TokenId kToyPrompt = 0;

// The production round on toy models, without network or threads: one session,
// one drafter, one verifier. `chance` feeds both nodes and the coordinator.
class ToyCluster {
 public:
  ToyCluster(const ClusterConfig& config, const ToyModel& model,
             RandomSource& chance);
  // With the coins that every process makes for itself in production.
  ToyCluster(const ClusterConfig& config, const ToyModel& model, uint64_t seed);
  ~ToyCluster();

  absl::StatusOr<Verdict> Round();
  // The round of SpeculativeDecoder.
  absl::StatusOr<Verdict> DecoderRound();

  Session& session() { return *session_; }
  int num_rounds() const { return view_.round_index; }
  const RoundView& view() const { return view_; }
  InProcessDraftStub& draft_stub() { return *draft_stub_; }
  InProcessVerifyStub& verify_stub() { return *verify_stub_; }
  DraftEngine& draft_engine() { return *draft_engine_; }
  VerifyEngine& verify_engine() { return *verify_engine_; }
  const TableLm& drafter_model() const { return *drafter_model_; }
  const TableLm& verifier_model() const { return *verifier_model_; }
  // Replaces the drafter's process: an empty cache, no incarnation.
  void RestartDrafter();

 private:
  class TappedDrafts;
  class TappedRule;
  class ScriptedLength;

  ToyCluster(const ClusterConfig& config, const ToyModel& model,
             std::unique_ptr<RandomSource> coins, uint64_t seed);
  std::unique_ptr<DraftEngine> NewDraftEngine();
  const ClusterConfig& config_;
  const ToyModel& model_;
  const std::unique_ptr<RandomSource> coins_;  // null: production's
  const TableLm* drafter_model_ = nullptr;     // of draft_engine_
  const TableLm* verifier_model_ = nullptr;    // of verify_engine_
  std::unique_ptr<DraftEngine> draft_engine_;
  std::unique_ptr<VerifyEngine> verify_engine_;
  std::unique_ptr<InProcessDraftStub> draft_stub_;
  std::unique_ptr<InProcessVerifyStub> verify_stub_;
  std::unique_ptr<Session> session_;
  // Of the last round.
  RoundView view_;
  Draft draft_;
  std::optional<Verdict> verdict_;
  LogitRows rows_;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_TOY_CLUSTER_H_
