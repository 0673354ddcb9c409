// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_GENERATION_CONVERT_H_
#define OUTRIDER_CORE_WIRE_GENERATION_CONVERT_H_

#include <optional>

#include "absl/status/statusor.h"
#include "core/wire/generation_update.h"
#include "core/wire/schedule.h"
#include "outrider/v1/generation.pb.h"

namespace outrider {

v1::Schedule ToProto(Schedule schedule);
// Nothing where it is not said; INVALID_ARGUMENT: unknown.
absl::StatusOr<std::optional<Schedule>> FromProto(v1::Schedule proto);

v1::GenerateResponse ToProto(const GenerationUpdate& update);
GenerationUpdate FromProto(const v1::GenerateResponse& proto);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_GENERATION_CONVERT_H_
