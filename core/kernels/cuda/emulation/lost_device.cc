// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "core/kernels/cuda/emulation/block.h"

// The library that programs open loses its device after so many launches of
// kernels as its environment says, for tests of what a program does then.
namespace outrider::kernels::cuda::emulation {
namespace {

[[maybe_unused]] const bool kIsRead = [] {
  const char* const num_launches =
      std::getenv("OUTRIDER_EMULATED_LAUNCHES_BEFORE_LOSS");
  if (num_launches == nullptr) return false;
  SetFailureAfter(std::atoi(num_launches),
                  "an illegal memory access was encountered");
  return true;
}();

}  // namespace
}  // namespace outrider::kernels::cuda::emulation
