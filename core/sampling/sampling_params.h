// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_SAMPLING_PARAMS_H_
#define OUTRIDER_CORE_SAMPLING_SAMPLING_PARAMS_H_

#include <vector>

#include "absl/status/status.h"
#include "core/base/number_range.h"
#include "core/base/token.h"

namespace outrider {

// Added to the logit of one token.
struct LogitBias {
  TokenId id = 0;
  double bias = 0;

  friend bool operator==(const LogitBias&, const LogitBias&) = default;
};

// How logits become a distribution. Both nodes and the coordinator use the
// same, so that draft and target are processed alike; process.h says what each
// does and in which order.
struct SamplingParams {
  double temperature = 1.0;                // below kGreedyTemperature: argmax
  int top_k = 0;                           // 0: off
  double top_p = 1.0;                      // 1: off
  double min_p = 0.0;                      // 0: off
  double repetition_penalty = 1.0;         // 1: off
  double presence_penalty = 0.0;           // 0: off
  double frequency_penalty = 0.0;          // 0: off
  std::vector<LogitBias> logit_bias = {};  // in ascending order of id
  double lossy_lenience = 1.0;             // 1: exact; see lenience.h

  friend bool operator==(const SamplingParams&,
                         const SamplingParams&) = default;
};

// Temperatures below this count as 0.
inline constexpr double kGreedyTemperature = 1e-4;
// What requests and flags may have. Penalties and biases are wide enough for
// all uses, and too narrow for any logit to overflow.
inline constexpr NumberRange kTemperatures = {.low = 0, .high = 10};
inline constexpr NumberRange kTopPs = {.low = 0, .high = 1, .has_low = false};
inline constexpr NumberRange kMinPs = {.low = 0, .high = 1};
inline constexpr NumberRange kRepetitionPenalties = {.low = 0.01, .high = 100};
inline constexpr NumberRange kAdditivePenalties = {.low = -2, .high = 2};
inline constexpr NumberRange kLogitBiases = {.low = -100, .high = 100};
inline constexpr NumberRange kLossyLeniences = {
    .low = 0, .high = 1, .has_low = false};
inline constexpr int kMaxLogitBiases = 1024;

inline bool IsGreedy(const SamplingParams& params) {
  return params.temperature < kGreedyTemperature;
}

inline bool IsLossy(const SamplingParams& params) {
  return params.lossy_lenience < 1;
}

// INVALID_ARGUMENT names the first parameter that is out of range and its
// value. Token ids need only be below 2^31.
absl::Status Validate(const SamplingParams& params);
// The same, and that every id is in [0, vocab_size).
absl::Status Validate(const SamplingParams& params, int vocab_size);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_SAMPLING_PARAMS_H_
