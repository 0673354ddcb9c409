// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_STATUS_MATCHERS_H_
#define OUTRIDER_CORE_TESTING_STATUS_MATCHERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"

namespace outrider::testing {

inline const absl::Status& ToStatus(const absl::Status& status) {
  return status;
}
template <typename T>
const absl::Status& ToStatus(const absl::StatusOr<T>& result) {
  return result.status();
}

// Takes absl::Status and absl::StatusOr alike.
MATCHER(IsOk, "is OK") {
  *result_listener << ToStatus(arg).ToString();
  return arg.ok();
}
MATCHER_P(StatusIs, code, "has the code " + absl::StatusCodeToString(code)) {
  *result_listener << ToStatus(arg).ToString();
  return ToStatus(arg).code() == code;
}
MATCHER_P2(StatusIs, code, message_matcher,
           "has the code " + absl::StatusCodeToString(code)) {
  *result_listener << ToStatus(arg).ToString();
  return ToStatus(arg).code() == code &&
         ::testing::Value(std::string(ToStatus(arg).message()),
                          message_matcher);
}

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_STATUS_MATCHERS_H_
