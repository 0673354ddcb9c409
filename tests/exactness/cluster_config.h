// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_CLUSTER_CONFIG_H_
#define OUTRIDER_TESTS_EXACTNESS_CLUSTER_CONFIG_H_

#include <optional>
#include <vector>

#include "core/base/token.h"
#include "core/drafting/ngram_strategy.h"
#include "core/sampling/draft_options.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/testing/enumerating_source.h"
#include "core/testing/table_lm.h"
#include "core/wire/node_calls.h"
#include "core/wire/schedule.h"
#include "tests/exactness/seams.h"

namespace outrider::testing {

inline constexpr int kToyContextLength = 1 << 20;

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
