// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_THROWN_STATUS_H_
#define OUTRIDER_CORE_BASE_THROWN_STATUS_H_

#include <exception>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace outrider {

// What an exception comes to, std::bad_alloc too: RESOURCE_EXHAUSTED would say
// that the call can never fit, and not that another process may serve it. We
// throw none, but libraries do. `what` says what has ended.
inline absl::Status ThrownStatus(absl::string_view what,
                                 const std::exception& thrown) {
  return absl::InternalError(absl::StrCat(what, ": ", thrown.what()));
}

// What the function yields, a Status or a StatusOr, or what it throws. It may
// have changed nothing that others use by then: that would stay half changed.
template <typename Function>
auto CatchThrown(absl::string_view what, Function function)
    -> decltype(function()) {
  try {
    return function();
  } catch (const std::exception& thrown) {
    return ThrownStatus(what, thrown);
  }
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_THROWN_STATUS_H_
