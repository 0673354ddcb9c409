// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_STATUS_MACROS_H_
#define OUTRIDER_CORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Return early with the status where an expression failed; the _CO_ forms do
// the same inside a coroutine.
#define OUTRIDER_RETURN_IF_ERROR(expression) \
  OUTRIDER_INTERNAL_IF_ERROR_(return, expression)
#define OUTRIDER_CO_RETURN_IF_ERROR(expression) \
  OUTRIDER_INTERNAL_IF_ERROR_(co_return, expression)

#define OUTRIDER_ASSIGN_OR_RETURN(target, expression)               \
  OUTRIDER_INTERNAL_ASSIGN_(                                        \
      return, OUTRIDER_INTERNAL_CAT_(status_or_, __LINE__), target, \
            expression)
#define OUTRIDER_CO_ASSIGN_OR_RETURN(target, expression)                  \
  OUTRIDER_INTERNAL_ASSIGN_(co_return,                                    \
                            OUTRIDER_INTERNAL_CAT_(status_or_, __LINE__), \
                            target, expression)

#define OUTRIDER_INTERNAL_IF_ERROR_(leave, expression)                        \
  do {                                                                        \
    if (absl::Status outrider_status = (expression); !outrider_status.ok()) { \
      leave outrider_status;                                                  \
    }                                                                         \
  } while (false)
#define OUTRIDER_INTERNAL_ASSIGN_(leave, temporary, target, expression) \
  auto temporary = (expression);                                        \
  if (!temporary.ok()) leave temporary.status();                        \
  target = std::move(temporary).value()
#define OUTRIDER_INTERNAL_CAT_(a, b) OUTRIDER_INTERNAL_CAT2_(a, b)
#define OUTRIDER_INTERNAL_CAT2_(a, b) a##b

#endif  // OUTRIDER_CORE_BASE_STATUS_MACROS_H_
