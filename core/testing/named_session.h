// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_NAMED_SESSION_H_
#define OUTRIDER_CORE_TESTING_NAMED_SESSION_H_

#include <cstdint>

#include "core/base/session_id.h"

namespace outrider::testing {

// The session that a test calls by this number, up to 255.
inline SessionId Id(int name) {
  return {.bytes = {static_cast<uint8_t>(name)}};
}

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_NAMED_SESSION_H_
