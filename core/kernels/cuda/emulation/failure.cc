// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/emulation/failure.h"

#include <string>
#include <utility>

#include "core/kernels/cuda/emulation/block.h"

namespace outrider::kernels::cuda::emulation {

Failure& TheFailure() {
  static Failure failure;
  return failure;
}

std::string TakeFailure() { return TheFailure().Take(); }

void SetFailure(std::string failure) { TheFailure().Note(std::move(failure)); }

void SetFailureAfter(int num_launches, std::string failure) {
  TheFailure().NoteAfter(num_launches, std::move(failure));
}

}  // namespace outrider::kernels::cuda::emulation
