// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_LAW_CASE_H_
#define OUTRIDER_TESTS_EXACTNESS_LAW_CASE_H_

#include <cstdint>
#include <string>

#include "core/sampling/sampling_params.h"
#include "tests/exactness/cluster_config.h"
#include "tests/exactness/enumeration.h"
#include "tests/exactness/plain_decoder.h"
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

// What every law must pass, or the running test fails: it is `plain` within
// kTolerance, of mass one, without a text that `plain` excludes; no round
// failed and no coin was misused.
Difference ExpectLaw(const Enumeration& enumeration, const Law& plain);

// Enumerates cases, and tells at its end how much was covered.
class LawCoverage {
 public:
  LawCoverage() = default;
  LawCoverage(const LawCoverage&) = delete;
  LawCoverage& operator=(const LawCoverage&) = delete;
  ~LawCoverage();

  // The law is what an independent decoder makes of the target, and no cache
  // misses.
  Enumeration Expect(const LawCase& law_case);

 private:
  int num_cases_ = 0;
  int64_t num_leaves_ = 0;
  double max_difference_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_LAW_CASE_H_
