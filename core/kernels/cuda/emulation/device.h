// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_DEVICE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_DEVICE_H_

#include <type_traits>

#include "core/kernels/cuda/element.h"
#include "core/kernels/cuda/emulation/block.h"
#include "core/kernels/cuda/emulation/loads.h"
#include "core/kernels/cuda/emulation/stream.h"
#include "core/kernels/cuda/emulation/types.h"
#include "core/kernels/cuda/emulation/warp.h"
#include "core/kernels/cuda/launch_limits.h"

// The part of CUDA that the kernels use, for a host's compiler; included by
// core/kernels/cuda/device.h alone. Needs nothing of the CUDA Toolkit.

// NOLINTBEGIN: the names are CUDA's.
#define __global__
#define __device__
#define __launch_bounds__(...)
#define threadIdx ::outrider::kernels::cuda::emulation::ThreadIndex()
#define blockIdx ::outrider::kernels::cuda::emulation::BlockIndex()
#define blockDim ::outrider::kernels::cuda::emulation::BlockSize()
#define gridDim ::outrider::kernels::cuda::emulation::GridSize()

#define OUTRIDER_SHARED(type, name) \
  static ::outrider::kernels::cuda::emulation::Shared<type> name
#define OUTRIDER_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(    \
      ::outrider::kernels::cuda::emulation::DynamicShared())

namespace outrider::kernels::cuda::emulation {

// An array in static shared memory.
template <typename Array>
class Shared {
 public:
  using Item = std::remove_extent_t<Array>;
  Item& operator[](int i) {
    RegisterShared(items_, sizeof items_);
    return items_[i];
  }
  operator Item*() {
    RegisterShared(items_, sizeof items_);
    return items_;
  }

 private:
  Array items_;
};

}  // namespace outrider::kernels::cuda::emulation

inline void __syncthreads(OUTRIDER_SITE) {
  outrider::kernels::cuda::emulation::Barrier({file, line});
}

// NOLINTEND

namespace outrider::kernels::cuda {

// Other names than those of the device's, which no program has as well.
inline namespace emulated {
template <typename... Parameters, typename... Arguments>
void LaunchGrid(emulation::Grid grid, Stream stream,
                void (*kernel)(Parameters...), Arguments... arguments) {
  grid.asks_for_more = grid.shared_bytes > kSharedBytesWithoutAsking;
  emulation::Submit(stream, [=] {
    emulation::NoteLoaded(reinterpret_cast<const void*>(kernel));
    // Each thread has its own copy of the arguments, as on a device.
    emulation::RunGrid(grid, [&] { kernel(Parameters(arguments)...); });
  });
}

template <typename... Parameters, typename... Arguments>
void Launch(dim3 blocks, int threads, size_t shared_bytes, Stream stream,
            void (*kernel)(Parameters...), Arguments... arguments) {
  LaunchGrid({.blocks = {blocks.x, blocks.y, blocks.z},
              .threads = {static_cast<unsigned>(threads), 1, 1},
              .shared_bytes = shared_bytes},
             stream, kernel, arguments...);
}

template <typename... Parameters, typename... Arguments>
void LaunchEarly(dim3 blocks, int threads, size_t shared_bytes, Stream stream,
                 void (*kernel)(Parameters...), Arguments... arguments) {
  LaunchGrid({.blocks = {blocks.x, blocks.y, blocks.z},
              .threads = {static_cast<unsigned>(threads), 1, 1},
              .shared_bytes = shared_bytes,
              .awaits_previous = true},
             stream, kernel, arguments...);
}

}  // namespace emulated
}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_DEVICE_H_
