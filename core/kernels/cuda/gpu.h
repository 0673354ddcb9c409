// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_GPU_H_
#define OUTRIDER_CORE_KERNELS_CUDA_GPU_H_

#include <cstddef>
#include <string>

#include "core/kernels/cuda/attention.h"
#include "core/kernels/cuda/copy_blocks.h"
#include "core/kernels/cuda/draw_next.h"
#include "core/kernels/cuda/element.h"
#include "core/kernels/cuda/linear.h"
#include "core/kernels/cuda/norm.h"
#include "core/kernels/cuda/packed_weight.h"
#include "core/kernels/cuda/rotate_store.h"
#include "core/kernels/cuda/score_rows.h"
#include "core/kernels/cuda/top_rows.h"

namespace outrider::kernels::cuda {

// A device with its memory, its kernels and one stream on which they run. All
// that a model needs of a GPU, so that a program opens the library that has it
// at run time: on a GPU, or emulated. Safe to use from one thread at a time;
// memory is given back from any, and while one thread asks for work another one
// may await an event and fetch.
class Gpu {
 public:
  virtual ~Gpu() = default;

  // The name is for people; the other one is ModelInfo::numerics.
  virtual std::string name() = 0;
  virtual std::string numerics() = 0;

  // They do what runtime.h says of theirs.
  virtual void* Allocate(size_t bytes) = 0;
  virtual void Free(void* memory) = 0;
  virtual size_t AvailableBytes() = 0;
  virtual void* AllocatePinned(size_t bytes) = 0;
  virtual void FreePinned(void* memory) = 0;

  // The calls below return at once; what they ask for is done in this order.
  // Host memory that they name stays as it is until they are awaited, pageable
  // or not: a device that shares the host's page tables may read either late.
  virtual void Upload(void* to, const void* from, size_t bytes) = 0;
  virtual void Download(void* to, const void* from, size_t bytes) = 0;
  virtual void Copy(void* to, const void* from, size_t bytes) = 0;
  virtual void Zero(void* memory, size_t bytes) = 0;
  virtual void Run(const PackArgs& args) = 0;
  virtual void Run(const EmbedArgs& args) = 0;
  virtual void Run(const LinearArgs& args) = 0;
  virtual void RunRmsNorm(const NormArgs& args) = 0;
  virtual void RunLayerNorm(const NormArgs& args) = 0;
  virtual void Run(const RotateStoreArgs& args) = 0;
  virtual void Run(const AttentionArgs& args) = 0;
  virtual void Run(const CopyBlocksArgs& args) = 0;
  virtual void Run(const ScoreRowsArgs& args) = 0;
  virtual void Run(const TopRowsArgs& args) = 0;
  virtual void Run(const DrawNextArgs& args) = 0;

  // What is asked for between the two is kept in place of being done. False:
  // the device keeps nothing, and there is nothing to end.
  [[nodiscard]] virtual bool BeginCapture() = 0;
  virtual Graph EndCapture() = 0;  // null: the device takes no such graph
  virtual void Run(Graph graph) = 0;
  virtual void Destroy(Graph graph) = 0;

  // Awaits all of it. What went wrong: then the device is lost.
  [[nodiscard]] virtual std::string Finish() = 0;

  virtual Event MakeEvent() = 0;  // null: the device makes none
  virtual void Destroy(Event event) = 0;
  // Puts it after all that was asked for. What went wrong as this thread asked.
  [[nodiscard]] virtual std::string Record(Event event) = 0;
  // Awaits what was asked for before it, and nothing after it. What went wrong:
  // then the device is lost.
  [[nodiscard]] virtual std::string Await(Event event) = 0;

  // A download that waits for nothing that was asked for: nobody writes there
  // meanwhile. Done when AwaitFetches returns, which tells what went wrong.
  virtual void Fetch(void* to, const void* from, size_t bytes) = 0;
  [[nodiscard]] virtual std::string AwaitFetches() = 0;
};

// One of this machine's devices; null with what is missing in *error.
Gpu* OpenGpu(int index, std::string* error);

// What a library of kernels exports: OpenGpu. The name has a hash of this
// header and of those that it includes (CMakeLists.txt): a library of another
// build is not taken for this one's.
using OpenGpuFunction = Gpu*(int index, std::string* error);

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_GPU_H_
