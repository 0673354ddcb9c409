// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_LAW_CASE_H_
#define OUTRIDER_TESTS_EXACTNESS_LAW_CASE_H_

#include <string>

#include "core/sampling/sampling_params.h"
#include "tests/exactness/cluster_config.h"
#include "tests/exactness/toy_model.h"

namespace outrider::testing {

// What sums of some hundred thousand products of doubles may differ by; the
// slightest mutant differs by a million times as much.
inline constexpr double kTolerance = 1e-12;

inline constexpr DrafterKind kAllDrafters[] = {
    DrafterKind::kCorrelated, DrafterKind::kReversed, DrafterKind::kUniform,
    DrafterKind::kOneHot, DrafterKind::kSame};

// The model and the options that most laws and all figures of mutants are of.
const ToyModel& FourWords();
inline const SamplingParams kFourWordsSampling = {.temperature = 0.8,
                                                  .top_k = 3};

// One law to enumerate: of the first `length` tokens.
struct LawCase {
  int vocab_size = 4;
  DrafterKind drafter = DrafterKind::kCorrelated;
  ClusterConfig config = {};
  int length = 4;
};
std::string Describe(const LawCase& law_case);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_LAW_CASE_H_
