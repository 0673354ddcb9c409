// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_CLUSTER_CONFIG_H_
#define OUTRIDER_TESTS_EXACTNESS_CLUSTER_CONFIG_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/round/draft_client.h"
#include "core/base/token.h"
#include "core/drafting/ngram_strategy.h"
#include "core/model/logit_rows.h"
#include "core/sampling/acceptance_rule.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/random_source.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/testing/enumerating_source.h"
#include "core/testing/table_lm.h"
#include "core/wire/node_calls.h"
#include "core/wire/schedule.h"

namespace outrider::testing {

inline constexpr int kToyContextLength = 1 << 20;

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
           !alter_hit && !coins && !judge && !draft_length && !drafts &&
           !memory && !round;
  }
};

struct ClusterConfig {
  SamplingParams sampling = {.temperature = 0.8, .top_k = 3};
  RuleKind rule = RuleKind::kRejection;
  // Nothing, or a size of 0: whole rows, not rounded, and no draft ends early.
  DraftOverrides drafting = {};
  ReplyFormat reply_format = ReplyFormat::kFull;
  std::vector<int> draft_lengths = {3};  // K by round, over and over
  int run_length = 1;  // tokens that a call without drafts may bring
  // The first round is plain, and the drafter takes in the prompt meanwhile.
  bool has_first_round = false;
  int max_length = 64;  // of the session; near it K is cut
  // How many the other verifier takes, once the session has moved.
  int most_drafts_elsewhere = 16;
  int num_deliveries = 1;  // of every call, same step, same bytes
  std::vector<TokenId> eos_ids = {};
  // Drafts from the session's own text instead of the toy drafter.
  std::optional<NgramStrategy::Options> ngrams = {};
  bool prompt_lookup = false;  // in front of the drafter
  // Where it is not sequential, production's drafts ahead are there too, and
  // the drafter takes in the prompt in the first round.
  Schedule schedule = Schedule::kSequential;
  int max_outcomes = 2;
  bool has_outcomes_by_the_book = false;  // not the drafter's own
  // What the target answers to questions about its rows; empty: it has whole
  // ones.
  TableLm::Answer answer = {};
  // The same of the drafter, and what it goes on with by itself.
  TableLm::Answer draft_answer = {};
  TableLm::Guess draft_guess = {};
  EnumeratingSource::Reuse reuse = EnumeratingSource::Reuse::kRefuse;
  Sabotage sabotage = {};
};

inline constexpr TokenId kToyPrompt = 0;

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_CLUSTER_CONFIG_H_
