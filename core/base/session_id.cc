// SPDX-License-Identifier: Apache-2.0
#include "core/base/session_id.h"

#include <sys/random.h>

#include "absl/strings/escaping.h"
#include "core/base/check.h"

namespace outrider {
namespace {

void FillRandom(void* data, size_t size) {
  // Requests of up to 256 bytes are never cut short once the pool is seeded.
  OUTRIDER_CHECK(getrandom(data, size, 0) == static_cast<ssize_t>(size))
      << "getrandom failed";
}

}  // namespace

Id128 Id128::Random() {
  Id128 id;
  FillRandom(id.bytes.data(), id.bytes.size());
  return id;
}

Id128 Id128::FromBytes(absl::string_view bytes) {
  Id128 id;
  if (bytes.size() == id.bytes.size()) {
    std::memcpy(id.bytes.data(), bytes.data(), bytes.size());
  }
  return id;
}

std::string Id128::ToBytes() const {
  if (is_none()) return "";
  return std::string(bytes.begin(), bytes.end());
}

std::string Id128::ShortHex() const {
  return absl::BytesToHexString(std::string(bytes.begin(), bytes.begin() + 4));
}

uint64_t RandomSeed() {
  uint64_t seed = 0;
  FillRandom(&seed, sizeof(seed));
  return seed;
}

}  // namespace outrider
