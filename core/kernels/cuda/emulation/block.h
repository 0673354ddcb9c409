// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_BLOCK_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

// Runs the blocks of a CUDA kernel one after the other on the calling thread,
// each CUDA thread on a stack of its own, in an order that a seed permutes
// between barriers: by odd seeds threads take turns, by even ones a warp runs
// to the barrier before the next one begins, as far ahead of the others as it
// may be. What a device would do wrong silently fails here: threads
// that part at a barrier, lanes that meet in different operations, shared
// memory that nobody wrote (it starts as NaN, and as -1 in integers).
namespace outrider::kernels::cuda::emulation {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct Grid {
  Dim3 blocks = {};
  Dim3 threads = {};
  size_t shared_bytes = 0;       // dynamic shared memory
  bool asks_for_more = false;    // than a launch may have that asks for nothing
  bool awaits_previous = false;  // each thread does (next_kernel.h)
};

// A place in the source, of the kernel's barrier or warp operation.
struct Site {
  const char* file = "";
  int line = 0;
};

// The order of threads and blocks in every launch from now on.
void SetSeed(uint64_t seed);
// What went wrong first since the last call; empty if nothing did.
std::string TakeFailure();
// Makes that what went wrong.
void SetFailure(std::string failure);
// The same in a launch to come, after so many others.
void SetFailureAfter(int num_launches, std::string failure);

// Calls `body` once for each thread of each block.
void RunGrid(const Grid& grid, const std::function<void()>& body);

// For what follows, the calling code runs as a thread of a block.

const Dim3& BlockIndex();
const Dim3& ThreadIndex();
const Dim3& BlockSize();
const Dim3& GridSize();
int Lane();

// Ends the thread and the launch with a message; never returns. What the
// thread owns is not given back: its stack is dropped as it is.
[[noreturn]] void Fail(const char* what, Site site);

void Barrier(Site site);

// Noted of the thread: there is no kernel that still runs.
void AwaitPreviousKernel();

// What the lanes of a warp have brought to an operation, lane by lane.
inline constexpr size_t kPayloadBytes = 32;
struct alignas(16) Payload {
  unsigned char bytes[kPayloadBytes];
};

// Every lane of `mask` brings `bytes` of a payload to the same operation, named
// by `kind` and its site; all receive everybody's, [32], until their next one.
// `mine` may be null where `bytes` is 0.
const Payload* Exchange(unsigned mask, const void* mine, size_t bytes, int kind,
                        Site site);

// The thread's copies to shared memory (copies.h).
void AskForCopy(void* shared, const void* from, size_t bytes);
void EndCopyGroup();
void WaitForCopies(int left);

// The block's dynamic shared memory, of exactly the launch's size.
void* DynamicShared();
// Makes an object static shared memory: poisoned at the start of each block,
// and part of what the launch takes.
void RegisterShared(void* object, size_t bytes);

}  // namespace outrider::kernels::cuda::emulation

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_BLOCK_H_
