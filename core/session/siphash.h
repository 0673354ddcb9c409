// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_SIPHASH_H_
#define OUTRIDER_CORE_SESSION_SIPHASH_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace outrider {

// SipHash-2-4 (Aumasson and Bernstein 2012) of `data` under a 128-bit key,
// bytes little-endian.
uint64_t SipHash24(const std::array<uint8_t, 16>& key, absl::string_view data);

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_SIPHASH_H_
