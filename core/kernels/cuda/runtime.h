// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_RUNTIME_H_
#define OUTRIDER_CORE_KERNELS_CUDA_RUNTIME_H_

#include <cstddef>
#include <string>

#include "core/kernels/cuda/element.h"

// What this folder's users need of the CUDA runtime, so that they compile
// without it. It is compiled for a GPU and for the emulation, as the kernels
// are: which library is linked decides where they run. Functions that return a
// string return what went wrong, or nothing.
namespace outrider::kernels::cuda {

// What the kernels run on, for people: "NVIDIA H100 80GB HBM3", or "emulated on
// the host; no GPU was used".
std::string DeviceName();

// Device memory, or null where there is none left. Contents are unspecified.
void* AllocateMemory(size_t bytes);
void FreeMemory(void* memory);  // null is fine

// In the order of the stream, as kernels are. Host memory may be reused when
// they return.
void CopyToDevice(void* to, const void* from, size_t bytes, Stream stream);
void ZeroMemory(void* memory, size_t bytes, Stream stream);

// Awaits all that the stream was given.
[[nodiscard]] std::string CopyToHost(void* to, const void* from, size_t bytes,
                                     Stream stream);
// The same without a copy.
[[nodiscard]] std::string Synchronize(Stream stream);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_RUNTIME_H_
