// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_SYSTEM_ERROR_H_
#define OUTRIDER_BENCH_NETWORK_SYSTEM_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace outrider::bench {

// What a system call has just left in errno, as "cannot open this file: ...".
// UNAVAILABLE; PERMISSION_DENIED names the capability that the caller lacks.
absl::Status SystemError(absl::string_view what,
                         absl::string_view capability = "");

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_SYSTEM_ERROR_H_
