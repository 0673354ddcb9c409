// SPDX-License-Identifier: Apache-2.0
#include "core/wire/sampling_convert.h"

#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace outrider {

v1::SamplingParams ToProto(const SamplingParams& params) {
  v1::SamplingParams proto;
  proto.set_temperature(params.temperature);
  proto.set_top_k(params.top_k);
  proto.set_top_p(params.top_p);
  proto.set_min_p(params.min_p);
  proto.set_repetition_penalty(params.repetition_penalty);
  proto.set_presence_penalty(params.presence_penalty);
  proto.set_frequency_penalty(params.frequency_penalty);
  SetLogitBias(params.logit_bias, proto.mutable_logit_bias());
  return proto;
}

absl::StatusOr<SamplingParams> FromProto(const v1::SamplingParams& proto) {
  if (proto.top_k() > std::numeric_limits<int>::max()) {
    return absl::InvalidArgumentError(
        absl::StrCat("top_k is far too large: ", proto.top_k()));
  }
  SamplingParams params = {.temperature = proto.temperature(),
                           .top_k = static_cast<int>(proto.top_k()),
                           .top_p = proto.top_p(),
                           .min_p = proto.min_p(),
                           .presence_penalty = proto.presence_penalty(),
                           .frequency_penalty = proto.frequency_penalty(),
                           .logit_bias = FromProto(proto.logit_bias())};
  if (proto.has_repetition_penalty()) {
    params.repetition_penalty = proto.repetition_penalty();
  }
  OUTRIDER_RETURN_IF_ERROR(Validate(params));
  return params;
}

std::vector<LogitBias> FromProto(
    const google::protobuf::RepeatedPtrField<v1::LogitBias>& proto) {
  std::vector<LogitBias> entries;
  entries.reserve(proto.size());
  for (const v1::LogitBias& entry : proto) {
    entries.push_back(
        {.id = static_cast<TokenId>(entry.id()), .bias = entry.bias()});
  }
  return entries;
}

void SetLogitBias(absl::Span<const LogitBias> entries,
                  google::protobuf::RepeatedPtrField<v1::LogitBias>* proto) {
  for (const LogitBias& entry : entries) {
    v1::LogitBias& added = *proto->Add();
    added.set_id(entry.id);
    added.set_bias(entry.bias);
  }
}

}  // namespace outrider
