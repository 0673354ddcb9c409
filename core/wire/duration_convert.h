// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_DURATION_CONVERT_H_
#define OUTRIDER_CORE_WIRE_DURATION_CONVERT_H_

#include "google/protobuf/duration.pb.h"

namespace outrider {

// Rounds to the nearest nanosecond.
void SetDuration(double seconds, google::protobuf::Duration* duration);
// A peer may say anything: more than thirty years, either way, are thirty, so
// that who multiplies or adds it stays in the range of the clocks.
double ToSeconds(const google::protobuf::Duration& duration);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_DURATION_CONVERT_H_
