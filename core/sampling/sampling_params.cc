// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/sampling_params.h"

#include "absl/strings/str_cat.h"

namespace outrider {

absl::Status Validate(const SamplingParams& params) {
  // Written so that NaN fails each test.
  if (!(params.temperature >= 0 && params.temperature <= kMaxTemperature)) {
    return absl::InvalidArgumentError(
        absl::StrCat("temperature must be between 0 and ", kMaxTemperature,
                     ", not ", params.temperature));
  }
  if (params.top_k < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k must be 0 (off) or positive, not ", params.top_k));
  }
  if (!(params.top_p > 0 && params.top_p <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "top_p must be above 0 and at most 1, not ", params.top_p));
  }
  return absl::OkStatus();
}

}  // namespace outrider
