// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_ASYNC_COPY_H_
#define OUTRIDER_CORE_KERNELS_CUDA_ASYNC_COPY_H_

#include "core/kernels/cuda/device.h"

// Copies of 16 bytes from memory into shared memory that go on while their
// thread does something else: cp.async. A thread ends groups of what it asked
// for, and waits until all but its latest groups have come; that makes them
// visible to itself alone, others need a barrier. All that was asked for has to
// be waited for. Loads into registers cannot be kept ahead like that: which of
// them an instruction waits for is the compiler's choice, and it was "all".
// In emulation a copy is made when it is waited for, and its place is NaN until
// then.
namespace outrider::kernels::cuda {

// What passes through once leaves the first-level cache to what does not.
enum class Reuse { kNone, kByOtherBlocks };

template <Reuse kReuse>
__device__ inline void CopyAsync(uint4* shared, const uint4* from,
                                 bool is_there = true) {
#ifdef __CUDA_ARCH__
  const auto to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  const int bytes = is_there ? 16 : 0;  // the rest of the 16 become zeros
  if constexpr (kReuse == Reuse::kNone) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(from), "r"(bytes)
                 : "memory");
  }
#elif !defined(__CUDACC__)
  emulation::AskForCopy(shared, is_there ? from : nullptr, sizeof(uint4));
#endif
}

__device__ inline void EndCopyGroup() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.commit_group;" ::: "memory");
#elif !defined(__CUDACC__)
  emulation::EndCopyGroup();
#endif
}

// Waits for all groups but the latest `kLeft`.
template <int kLeft>
__device__ inline void WaitForCopies() {
#ifdef __CUDA_ARCH__
  asm volatile("cp.async.wait_group %0;" ::"n"(kLeft) : "memory");
#elif !defined(__CUDACC__)
  emulation::WaitForCopies(kLeft);
#endif
}

// Shared memory, read where this stands among other wrapped instructions: what
// the compiler is free to move it gathers, and a warp that has asked for much
// at once waits before it can do anything else.
__device__ inline uint4 LoadInOrder(const uint4* shared) {
#ifdef __CUDA_ARCH__
  const auto from = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  uint4 words;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "r"(from)
               : "memory");
  return words;
#else
  return *shared;
#endif
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_ASYNC_COPY_H_
