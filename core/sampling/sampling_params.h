// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_SAMPLING_PARAMS_H_
#define OUTRIDER_CORE_SAMPLING_SAMPLING_PARAMS_H_

#include "absl/status/status.h"

namespace outrider {

// How logits become a distribution. Both nodes and the coordinator use the
// same, so that draft and target are processed alike.
struct SamplingParams {
  double temperature = 1.0;  // below kGreedyTemperature: argmax
  int top_k = 0;             // 0: off
  double top_p = 1.0;        // 1: off

  friend bool operator==(const SamplingParams&,
                         const SamplingParams&) = default;
};

// Temperatures below this count as 0.
inline constexpr double kGreedyTemperature = 1e-4;
inline constexpr double kMaxTemperature = 10.0;

inline bool IsGreedy(const SamplingParams& params) {
  return params.temperature < kGreedyTemperature;
}

// INVALID_ARGUMENT names the first parameter that is out of range and its
// value.
absl::Status Validate(const SamplingParams& params);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_SAMPLING_PARAMS_H_
