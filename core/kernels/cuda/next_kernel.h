// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_NEXT_KERNEL_H_
#define OUTRIDER_CORE_KERNELS_CUDA_NEXT_KERNEL_H_

#include "core/kernels/cuda/device.h"

// A kernel that begins while the one before it in the stream still runs
// (programmatic dependent launch, CUDA C++ Programming Guide): its blocks take
// the places that are free by then, and what each does before it calls
// AwaitPreviousKernel is done beside that kernel. So the weights of a product
// are on their way when its inputs come. The rules:
//
// * Such a kernel is launched by LaunchEarly, and every thread of it calls
//   AwaitPreviousKernel once, before it returns, and before it reads what any
//   kernel of the pass writes, or writes anything but shared memory. The
//   kernel before it has awaited its own in turn, so all of them have ended
//   then, and what they wrote is seen.
// * Before that it reads only what nobody writes while passes run: weights.
//   What a pass writes is read by plain loads at any time, not by __ldg.
//
// Devices before sm_90 run one kernel after the other, as the emulation does,
// which fails where a thread ends that has not awaited; what it did before that
// nobody checks.
namespace outrider::kernels::cuda {

#ifdef __CUDACC__
// Launches a kernel that keeps these rules, as Launch does others.
template <typename... Parameters, typename... Arguments>
void LaunchEarly(dim3 blocks, int threads, size_t shared_bytes, Stream stream,
                 void (*kernel)(Parameters...), Arguments... arguments) {
  AllowSharedMemory(kernel, shared_bytes);
  int device = 0, major = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = major >= 9 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}
#endif

__device__ inline void AwaitPreviousKernel() {
#ifdef __CUDA_ARCH__
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
#elif !defined(__CUDACC__)
  emulation::AwaitPreviousKernel();
#endif
}

// From here on the next kernel's blocks may have what this one's leave free.
// It begins once each block has come here, and so has a place. Products, norms
// and embeddings let it begin at once, rotation and attention only after their
// own wait, and all only where there is little: up to eight of what the kernel
// counts, rows or tiles of attention. So an H100 took least; from sixteen rows
// on it took more than without. It may be that blocks which come early take
// places where others still work: nobody has traced it.
__device__ inline void LetNextKernelBegin([[maybe_unused]] int count) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr int kMost = 8;
  if (count > kMost) return;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_NEXT_KERNEL_H_
