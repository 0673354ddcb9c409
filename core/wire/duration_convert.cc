// SPDX-License-Identifier: Apache-2.0
#include "core/wire/duration_convert.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace outrider {
namespace {

constexpr int64_t kNanosPerSecond = 1'000'000'000;
constexpr double kMostSeconds = 1e9;

}  // namespace

void SetDuration(double seconds, google::protobuf::Duration* duration) {
  const int64_t nanos = std::llround(seconds * kNanosPerSecond);
  duration->set_seconds(nanos / kNanosPerSecond);
  duration->set_nanos(static_cast<int32_t>(nanos % kNanosPerSecond));
}

double ToSeconds(const google::protobuf::Duration& duration) {
  const double seconds =
      static_cast<double>(duration.seconds()) +
      static_cast<double>(duration.nanos()) / kNanosPerSecond;
  return std::clamp(seconds, -kMostSeconds, kMostSeconds);
}

}  // namespace outrider
