// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_CALL_LIMITS_H_
#define OUTRIDER_CORE_WIRE_CALL_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace outrider {

// What calls to nodes may have, and which version of them this is.

// Nothing ever spoke 3, so that 2, whose draft rows were written otherwise, is
// no neighbour of it.
inline constexpr int kProtocolVersion = 4;
inline constexpr int kDefaultMaxDraftTokens = 16;
// Outcomes that a drafter with a model drafts for at once.
inline constexpr int kMaxOutcomes = 16;
// The most ids that the draft rows of a message may have together: 16 rows of a
// million tokens. What is packed would else grow 32 times in memory.
inline constexpr int64_t kMaxRowIds = 1 << 24;
inline constexpr size_t kMaxEndTokens = 64;  // of a call

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_CALL_LIMITS_H_
