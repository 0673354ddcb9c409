// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_FINISH_REASON_H_
#define OUTRIDER_CORE_WIRE_FINISH_REASON_H_

namespace outrider {

// Why a generation ended.
enum class FinishReason {
  kUnknown,  // a newer coordinator may have more of them
  kEos,
  kStop,
  kLength,
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_FINISH_REASON_H_
