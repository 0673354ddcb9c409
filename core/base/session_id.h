// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_SESSION_ID_H_
#define OUTRIDER_CORE_BASE_SESSION_ID_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace outrider {

// 128 random bits that name something: a session, or one node's life of it.
// All zero means none.
struct Id128 {
  std::array<uint8_t, 16> bytes = {};

  // Drawn from the operating system's random source.
  static Id128 Random();
  // Exactly 16 bytes, or the empty string for none; anything else is none too,
  // so callers that must tell them apart check the size first.
  static Id128 FromBytes(absl::string_view bytes);

  bool is_none() const { return *this == Id128{}; }
  // 16 bytes, or empty for none.
  std::string ToBytes() const;
  // The first 8 hexadecimal digits: all that logs may show.
  std::string ShortHex() const;

  friend bool operator==(const Id128&, const Id128&) = default;
  friend auto operator<=>(const Id128&, const Id128&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const Id128& id) {
    return H::combine(std::move(h), id.bytes);
  }
};

using SessionId = Id128;
using Incarnation = Id128;

// 64 random bits from the operating system: a seed for a request without one.
uint64_t RandomSeed();

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_SESSION_ID_H_
