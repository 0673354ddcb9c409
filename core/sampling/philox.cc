// SPDX-License-Identifier: Apache-2.0
#include "core/sampling/philox.h"

#include <cstddef>

#include "core/kernels/instruction_set.h"

namespace outrider {
namespace {

using Counter = std::array<uint32_t, 4>;
using Key = std::array<uint32_t, 2>;

OUTRIDER_INLINE Counter TenRounds(Counter counter, Key key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;
  constexpr uint32_t kWeyl1 = 0xBB67AE85;
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

OUTRIDER_INLINE void RunLoop(Counter counter, Key key, uint64_t* bits,
                             size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const Counter words = TenRounds({counter[0] + static_cast<uint32_t>(i),
                                     counter[1], counter[2], counter[3]},
                                    key);
    bits[2 * i] = static_cast<uint64_t>(words[1]) << 32 | words[0];
    bits[2 * i + 1] = static_cast<uint64_t>(words[3]) << 32 | words[2];
  }
}
OUTRIDER_AVX2 void RunAvx2(Counter counter, Key key, uint64_t* bits,
                           size_t count) {
  RunLoop(counter, key, bits, count);
}

}  // namespace

Counter Philox4x32(Counter counter, Key key) { return TenRounds(counter, key); }

void PhiloxRun(Counter counter, Key key, absl::Span<uint64_t> bits) {
  const auto loop = HasAvx2() ? RunAvx2 : RunLoop;
  loop(counter, key, bits.data(), bits.size() / 2);
}

}  // namespace outrider
