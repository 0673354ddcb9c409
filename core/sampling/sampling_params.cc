// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/sampling_params.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "core/base/error_reason.h"
#include "core/base/status_macros.h"

namespace outrider {
namespace {

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
    if (!kLogitBiases.Has(entry.bias)) {
      return CheckNumber(absl::StrCat("logit_bias of token ", entry.id),
                         entry.bias, kLogitBiases);
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

// The field has the option's name.
absl::Status CheckField(absl::string_view name, double value,
                        const NumberRange& range, absl::string_view note = "") {
  return AtField(name, CheckNumber(name, value, range, note));
}

absl::Status ValidateFor(const SamplingParams& params, int64_t num_ids) {
  OUTRIDER_RETURN_IF_ERROR(
      CheckField("temperature", params.temperature, kTemperatures));
  if (params.top_k < 0) {
    return AtField(
        "top_k", absl::InvalidArgumentError(absl::StrCat(
                     "top_k must be 0 (off) or positive, not ", params.top_k)));
  }
  OUTRIDER_RETURN_IF_ERROR(CheckField("top_p", params.top_p, kTopPs));
  OUTRIDER_RETURN_IF_ERROR(
      CheckField("min_p", params.min_p, kMinPs, ", where 0 is off"));
  OUTRIDER_RETURN_IF_ERROR(
      CheckField("repetition_penalty", params.repetition_penalty,
                 kRepetitionPenalties, ", where 1 is off"));
  OUTRIDER_RETURN_IF_ERROR(CheckField("presence_penalty",
                                      params.presence_penalty,
                                      kAdditivePenalties, ", where 0 is off"));
  OUTRIDER_RETURN_IF_ERROR(CheckField("frequency_penalty",
                                      params.frequency_penalty,
                                      kAdditivePenalties, ", where 0 is off"));
  OUTRIDER_RETURN_IF_ERROR(CheckField("lossy_lenience", params.lossy_lenience,
                                      kLossyLeniences, ", which is exact"));
  return AtField("logit_bias", CheckLogitBias(params.logit_bias, num_ids));
}

}  // namespace

absl::Status Validate(const SamplingParams& params) {
  return ValidateFor(params, int64_t{1} << 31);
}

absl::Status Validate(const SamplingParams& params, int vocab_size) {
  return ValidateFor(params, vocab_size);
}

}  // namespace outrider
