// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/runtime.h"

#include <cstdlib>
#include <cstring>

#include "core/kernels/cuda/emulation/block.h"

namespace outrider::kernels::cuda {

std::string DeviceName() { return "emulated on the host; no GPU was used"; }

void* AllocateMemory(size_t bytes) {
  void* memory = nullptr;
  // Exactly as large as asked for, so that the address sanitizer guards it.
  if (posix_memalign(&memory, 256, bytes) != 0) return nullptr;
  std::memset(memory, 0xFF, bytes);  // NaN to whoever reads it unwritten
  return memory;
}

void FreeMemory(void* memory) { std::free(memory); }

void CopyToDevice(void* to, const void* from, size_t bytes, Stream) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void ZeroMemory(void* memory, size_t bytes, Stream) {
  if (bytes > 0) std::memset(memory, 0, bytes);
}

std::string CopyToHost(void* to, const void* from, size_t bytes,
                       Stream stream) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return Synchronize(stream);
}

std::string Synchronize(Stream) { return emulation::TakeFailure(); }

}  // namespace outrider::kernels::cuda
