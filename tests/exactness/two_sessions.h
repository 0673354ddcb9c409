// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_TWO_SESSIONS_H_
#define OUTRIDER_TESTS_EXACTNESS_TWO_SESSIONS_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/base/token.h"
#include "core/sampling/rule_kind.h"
#include "core/sampling/sampling_params.h"
#include "core/wire/node_calls.h"
#include "tests/exactness/plain_decoder.h"
#include "tests/exactness/toy_model.h"

namespace outrider::testing {

struct TwoSessionsConfig {
  SamplingParams sampling = {.temperature = 0.8};
  RuleKind rule = RuleKind::kRejection;
  ReplyFormat reply_format = ReplyFormat::kFull;
  int draft_length = 1;
  int prompt_length = 1;   // the same prompt for both
  int prefill_chunk = 16;  // longer ones are run in chunks
  // The second one begins a round later than the first, and finds what that has
  // cached where both have one salt.
  bool is_second_late = false;
  std::array<std::string, 2> salts = {};
};

struct TwoSessions {
  // The probability of the first `length` tokens of both.
  std::map<std::pair<TokenSeq, TokenSeq>, double> law;
  int64_t num_leaves = 0;
  int num_misses = 0;
  int num_shared_passes = 0;  // that both sessions were in
  int64_t num_reused = 0;     // tokens that one has of the other
  std::string problem;
};

// The exact joint law of two sessions that one drafter and one verifier serve,
// both in the same passes: every branch that the chance of either can take.
TwoSessions EnumerateTwoSessions(const TwoSessionsConfig& config,
                                 const ToyModel& model, int length);

// The largest difference from the product of what plain decoding gives each of
// them.
double DifferenceFromPlain(const TwoSessions& sessions,
                           const TwoSessionsConfig& config,
                           const ToyModel& model, int length);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_TWO_SESSIONS_H_
