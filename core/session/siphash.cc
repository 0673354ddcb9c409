// SPDX-License-Identifier: Apache-2.0
#include "core/session/siphash.h"

#include <bit>
#include <cstring>

namespace outrider {
namespace {

struct SipState {
  uint64_t v0, v1, v2, v3;

  void Round() {
    v0 += v1;
    v1 = std::rotl(v1, 13) ^ v0;
    v0 = std::rotl(v0, 32);
    v2 += v3;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 += v3;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 += v1;
    v1 = std::rotl(v1, 17) ^ v2;
    v2 = std::rotl(v2, 32);
  }
  void Absorb(uint64_t word) {
    v3 ^= word;
    Round();
    Round();
    v0 ^= word;
  }
};

uint64_t LoadLittleEndian(const void* bytes, size_t size) {
  static_assert(std::endian::native == std::endian::little);
  uint64_t word = 0;
  std::memcpy(&word, bytes, size);
  return word;
}

}  // namespace

uint64_t SipHash24(const std::array<uint8_t, 16>& key, absl::string_view data) {
  const uint64_t k0 = LoadLittleEndian(key.data(), 8);
  const uint64_t k1 = LoadLittleEndian(key.data() + 8, 8);
  SipState state = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
                    k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
  const uint64_t size = data.size();
  for (; data.size() >= 8; data.remove_prefix(8)) {
    state.Absorb(LoadLittleEndian(data.data(), 8));
  }
  state.Absorb(LoadLittleEndian(data.data(), data.size()) | (size << 56));
  state.v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) state.Round();
  return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace outrider
