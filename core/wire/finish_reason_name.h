// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_FINISH_REASON_NAME_H_
#define OUTRIDER_CORE_WIRE_FINISH_REASON_NAME_H_

#include "core/wire/finish_reason.h"

namespace outrider {

// The word that metrics and reports have for it.
inline const char* NameOf(FinishReason reason) {
  switch (reason) {
    case FinishReason::kEos:
      return "eos";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_FINISH_REASON_NAME_H_
