// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_SAMPLING_CONVERT_H_
#define OUTRIDER_CORE_WIRE_SAMPLING_CONVERT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "core/sampling/sampling_params.h"
#include "outrider/v1/types.pb.h"

namespace outrider {

v1::SamplingParams ToProto(const SamplingParams& params);
// INVALID_ARGUMENT as Validate says; ids are not held against a vocabulary.
absl::StatusOr<SamplingParams> FromProto(const v1::SamplingParams& proto);

// In the order given, nothing checked.
std::vector<LogitBias> FromProto(
    const google::protobuf::RepeatedPtrField<v1::LogitBias>& proto);
void SetLogitBias(absl::Span<const LogitBias> entries,
                  google::protobuf::RepeatedPtrField<v1::LogitBias>* proto);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_SAMPLING_CONVERT_H_
