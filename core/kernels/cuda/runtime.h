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

// Whether the machine has a device of this number that works: makes it the
// calling thread's.
std::string OpenDevice(int index);
// The same for one that was opened: what follows on this thread is for it.
void UseDevice(int index);

// What the kernels run on, for people: "NVIDIA H100 80GB HBM3", or "emulated on
// the host; no GPU was used".
std::string DeviceName();
// Whose order of accumulation it is: "cuda_sm90", or "cuda_emulated".
std::string DeviceNumerics();

// How many multiprocessors the thread's device has: as many blocks of threads
// run at once, if each takes one for itself.
int NumProcessors();

// Device memory, or null where there is none left. Contents are unspecified.
void* AllocateMemory(size_t bytes);
void FreeMemory(void* memory);  // null is fine
size_t AvailableMemory();

// Host memory that a device copies from and to by itself; or null.
void* AllocatePinned(size_t bytes);
void FreePinned(void* memory);

// A queue of work: copies and kernels run in their order, at some time before
// Synchronize returns. The stream null is there always.
std::string MakeStream(Stream* stream);
void DestroyStream(Stream stream);

// Host memory, AllocatePinned's or not, stays as it is until Synchronize.
void CopyToDevice(void* to, const void* from, size_t bytes, Stream stream);
void CopyToHost(void* to, const void* from, size_t bytes, Stream stream);
void CopyOnDevice(void* to, const void* from, size_t bytes, Stream stream);
void ZeroMemory(void* memory, size_t bytes, Stream stream);

// Awaits all that the stream was given, and tells the first failure since this
// thread was last told of one.
[[nodiscard]] std::string Synchronize(Stream stream);

// A place in a stream: Await returns once all is done that came before it, and
// tells what Synchronize tells. Null, where the device makes none.
Event MakeEvent();
void DestroyEvent(Event event);
// Tells the first failure of what this thread has asked for since the last
// call.
[[nodiscard]] std::string RecordEvent(Event event, Stream stream);
[[nodiscard]] std::string AwaitEvent(Event event);

// What a stream is given between the two is not run but kept, arguments and
// all, to be launched as one. False: nothing is kept.
[[nodiscard]] bool BeginCapture(Stream stream);
Graph EndCapture(Stream stream);  // null, where the device takes no such graph
void LaunchGraph(Graph graph, Stream stream);
void DestroyGraph(Graph graph);  // null is fine

}  // namespace outrider::kernels::cuda

#endif  // OUTRIDER_CORE_KERNELS_CUDA_RUNTIME_H_
