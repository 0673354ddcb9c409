// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_ANSWERED_LAW_H_
#define OUTRIDER_TESTS_EXACTNESS_ANSWERED_LAW_H_

#include <cstdint>
#include <vector>

#include "core/sampling/sampling_params.h"
#include "core/testing/table_lm.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/law_case.h"

// The law of a cluster whose target answers questions about its rows in place
// of them (core/base/row_question.h).
namespace outrider::testing {

// Fewer of the greatest logits are told than there are words, so that others
// have a weight as well and some rows are not decided.
inline constexpr int kFewTop = 2;

// How the answers came out, over all rows.
struct AnswerCounts {
  int64_t num_answered = 0;
  int64_t num_undecided = 0;
};

// What a row's greatest logits decide: the cuts, penalties, and the argmax.
std::vector<SamplingParams> CutProcessings();

// A cluster with that answer, and how far its law is from plain decoding's,
// over the first three tokens. Any problem fails the running test.
ClusterConfig AnsweredConfig(const SamplingParams& sampling, ReplyFormat format,
                             TableLm::Answer answer);
Difference AnsweredDifference(const ClusterConfig& config);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_ANSWERED_LAW_H_
