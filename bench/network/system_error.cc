// SPDX-License-Identifier: Apache-2.0
#include "bench/network/system_error.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace outrider::bench {

absl::Status SystemError(absl::string_view what, absl::string_view capability) {
  const int error = errno;
  const std::string message =
      absl::StrCat("cannot ", what, ": ", std::strerror(error));
  if (error == EPERM && !capability.empty()) {
    return absl::PermissionDeniedError(
        absl::StrCat(message, "; run as root (", capability, ")"));
  }
  return absl::UnavailableError(message);
}

}  // namespace outrider::bench
