// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_SEAMS_H_
#define OUTRIDER_TESTS_EXACTNESS_SEAMS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/round/draft_client.h"
#include "core/base/token.h"
#include "core/model/logit_rows.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/random_source.h"
#include "core/testing/table_lm.h"
#include "core/wire/node_calls.h"

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
  // Whether the verifier is lost with this reply: another takes its place.
  std::function<bool(ToyCluster&, const VerifyCall&, const VerifyReply&)>
      is_verifier_lost = {};
  // Whether this call ends once its drafter has cut its cache, and no more.
  std::function<bool(const DraftCall&)> is_draft_cancelled = {};
  // A draft that the client has accepted, before it is scored and judged.
  std::function<void(Draft&)> alter_draft = {};
  // The same of one that was made ahead, before that.
  std::function<void(Draft&)> alter_hit = {};
  // How many outcomes are drafted for, of so many that are asked for.
  std::function<int(const RoundView&, int max_outcomes)> num_outcomes = {};
  // What the drafter answers to that, before the client has it.
  std::function<void(std::vector<OutcomeDraft>&)> alter_outcomes = {};
  std::function<std::unique_ptr<RandomSource>(RandomSource&)> coins = {};
  std::function<Verdict(const JudgeView&)> judge = {};
  std::function<int(const RoundView&, int k)> draft_length = {};
  // Stands in front of the node's drafter; called for each new session.
  std::function<std::unique_ptr<DraftClient>(DraftClient&)> drafts = {};
  // What those remember of past rounds: part of a generation's state.
  std::function<std::vector<int64_t>(DraftClient&)> memory = {};
  // Instead of ToyCluster::DecoderRound.
  std::function<absl::StatusOr<Verdict>(ToyCluster&)> round = {};

  bool IsNone() const {
    return !drafter_cut && !verifier_cut && !after_verify &&
           !is_verifier_lost && !is_draft_cancelled && !alter_draft &&
           !alter_hit && !num_outcomes && !alter_outcomes && !coins && !judge &&
           !draft_length && !drafts && !memory && !round;
  }
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_SEAMS_H_
