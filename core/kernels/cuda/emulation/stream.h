// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_STREAM_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "core/kernels/cuda/element.h"

// Streams, graphs and memory of the emulated device. A stream does nothing
// before somebody waits for it: whoever reads a result too early, or changes
// too early what a copy still has to read, gets what a device might give on its
// worst day. The stream null does everything at once. Threads may wait for one
// stream while one gives it work: who waits does the work, one at a time.
namespace outrider::kernels::cuda::emulation {

using Command = std::function<void()>;

// Runs it now, or puts it in the stream's queue, or in what is captured.
void Submit(Stream stream, Command command);

// Kernels that have run since the last call of ForgetLoaded: a device loads one
// when it is launched for the first time, which may wait for all that it does.
void NoteLoaded(const void* kernel);
int NumLoaded();
void ForgetLoaded();

// Devices differ by their number alone, and a thread uses the first until it
// says another: a stream is of the one that was used when it was made, and to
// give it work from another is a failure.
int NumDevices();
void SetNumDevices(int num_devices);  // 1 at first
bool UseDevice(int device);           // false: there is none
int UsedDevice();
// Each has 132 multiprocessors, as an H100 has, until a test says another
// number.
int NumProcessors();
void SetNumProcessors(int count);

Stream NewStream();  // null, where it is refused
void RefuseStreams(bool is_refused);
void DeleteStream(Stream stream);
void WaitFor(Stream stream);
// What was given to the stream before an event was put there for the last time
// is done by who waits for it, and nothing after it.
Event NewEvent();  // null, where it is refused
void RefuseEvents(bool is_refused);
void DeleteEvent(Event event);
void Record(Event event, Stream stream);
void WaitFor(Event event);
// How often somebody has waited for a stream or an event.
int64_t NumWaits();

bool Capture(Stream stream);  // false: it has begun already
Graph CapturedBy(Stream stream);
Graph CopyOf(Graph graph);
bool Upload(Graph graph);  // false: no memory for it
void Replay(Graph graph, Stream stream);
void DeleteGraph(Graph graph);
// What each graph takes of device memory, uploaded from now on; nothing at
// first.
void SetGraphBytes(size_t bytes);

// Device memory: aligned, exactly as large as asked for, so that the address
// sanitizer guards its end, and NaN to whoever reads it unwritten. Null beyond
// what the device has.
void* NewMemory(size_t bytes);
void DeleteMemory(void* memory);
size_t AvailableMemory();
// What it has besides what is taken already.
void SetAvailableMemory(size_t bytes);
// How many pieces of it were taken of which no byte has been written.
int NumUnwritten();

// Host memory that a device copies from and to by itself.
void* NewPinned(size_t bytes);
void DeletePinned(void* memory);
// What there is of it besides what is taken already; without end at first.
void SetAvailablePinned(size_t bytes);
// Reads when its turn comes, whatever memory it is.
void Copy(void* to, const void* from, size_t bytes, Stream stream);
// How many copies were from or to memory that is neither a device's nor pinned:
// whoever asks a device for one may wait for it.
int64_t NumPageableCopies();

}  // namespace outrider::kernels::cuda::emulation

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_STREAM_H_
