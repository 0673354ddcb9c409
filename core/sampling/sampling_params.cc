// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/sampling_params.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

absl::Status CheckAdditivePenalty(const char* name, double penalty) {
  if (penalty >= -kMaxAdditivePenalty && penalty <= kMaxAdditivePenalty) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, " must be between ", -kMaxAdditivePenalty, " and ",
                   kMaxAdditivePenalty, ", where 0 is off, not ", penalty));
}

absl::Status CheckLogitBias(const std::vector<LogitBias>& entries,
                            int64_t num_ids) {
  if (entries.size() > kMaxLogitBiases) {
    return absl::InvalidArgumentError(
        absl::StrCat("logit_bias may have at most ", kMaxLogitBiases,
                     " entries, not ", entries.size()));
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    const LogitBias& entry = entries[i];
    if (entry.id < 0 || entry.id >= num_ids) {
      return absl::InvalidArgumentError(
          absl::StrCat("logit_bias: token id ", AsSent(entry.id),
                       " is outside [0, ", num_ids, ")"));
    }
    if (!(entry.bias >= -kMaxLogitBias && entry.bias <= kMaxLogitBias)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "logit_bias must be between ", -kMaxLogitBias, " and ", kMaxLogitBias,
          ", but that of token ", entry.id, " is ", entry.bias));
    }
    if (i > 0 && entry.id == entries[i - 1].id) {
      return absl::InvalidArgumentError(
          absl::StrCat("logit_bias names token ", entry.id, " twice"));
    }
    if (i > 0 && entry.id < entries[i - 1].id) {
      return absl::InvalidArgumentError(
          absl::StrCat("the ids of logit_bias must ascend, but ", entry.id,
                       " follows ", entries[i - 1].id));
    }
  }
  return absl::OkStatus();
}

absl::Status ValidateFor(const SamplingParams& params, int64_t num_ids) {
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
  if (!(params.min_p >= 0 && params.min_p <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "min_p must be between 0, which is off, and 1, not ", params.min_p));
  }
  if (!(params.repetition_penalty >= kMinRepetitionPenalty &&
        params.repetition_penalty <= kMaxRepetitionPenalty)) {
    return absl::InvalidArgumentError(
        absl::StrCat("repetition_penalty must be between ",
                     kMinRepetitionPenalty, " and ", kMaxRepetitionPenalty,
                     ", where 1 is off, not ", params.repetition_penalty));
  }
  OUTRIDER_RETURN_IF_ERROR(
      CheckAdditivePenalty("presence_penalty", params.presence_penalty));
  OUTRIDER_RETURN_IF_ERROR(
      CheckAdditivePenalty("frequency_penalty", params.frequency_penalty));
  if (!(params.lossy_lenience > 0 && params.lossy_lenience <= 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "lossy_lenience must be above 0 and at most 1, which is exact, not ",
        params.lossy_lenience));
  }
  return CheckLogitBias(params.logit_bias, num_ids);
}

}  // namespace

absl::Status Validate(const SamplingParams& params) {
  return ValidateFor(params, int64_t{1} << 31);
}

absl::Status Validate(const SamplingParams& params, int vocab_size) {
  return ValidateFor(params, vocab_size);
}

}  // namespace outrider
