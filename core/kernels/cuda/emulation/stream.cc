// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/emulation/stream.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/base/check.h"
#include "core/base/mutex.h"
#include "core/kernels/cuda/emulation/block.h"

using outrider::kernels::cuda::emulation::Command;

// CUDA's names for what its handles point to.
struct CUgraphExec_st {
  std::vector<Command> commands;
  size_t bytes = 0;  // of the device's memory
};
struct CUstream_st {
  const int device = outrider::kernels::cuda::emulation::UsedDevice();
  outrider::Mutex running;  // who runs commands has it
  outrider::Mutex mu;
  std::deque<Command> queue ABSL_GUARDED_BY(mu);
  uint64_t num_given ABSL_GUARDED_BY(mu) = 0;
  uint64_t num_taken ABSL_GUARDED_BY(mu) = 0;  // of those, out of the queue
  // Confined to the thread that gives it work.
  bool is_capturing = false;
  std::vector<Command> captured;
};
struct CUevent_st {
  CUstream_st* stream = nullptr;
  uint64_t place = 0;  // commands before it
};

namespace outrider::kernels::cuda::emulation {
namespace {

constexpr size_t kAlignment = 256;
constexpr unsigned char kUnwritten = 0xFF;
constexpr size_t kDefaultMemory = size_t{256} << 20;

// Memory of one kind. Thread-safe, as any thread may give it back.
class Heap {
 public:
  explicit Heap(size_t available) : available_(available) {}

  // Null where there is not so much.
  void* New(size_t bytes) {
    MutexLock lock(mu_);
    void* memory = nullptr;
    if (bytes > available_ || posix_memalign(&memory, kAlignment, bytes) != 0) {
      return nullptr;
    }
    std::memset(memory, kUnwritten, bytes);
    available_ -= bytes;
    blocks_[memory] = bytes;
    return memory;
  }
  void Delete(void* memory) {
    if (memory == nullptr) return;
    MutexLock lock(mu_);
    const auto block = blocks_.find(memory);
    OUTRIDER_CHECK(block != blocks_.end()) << "no memory of this kind";
    available_ += block->second;
    blocks_.erase(block);
    std::free(memory);
  }
  int num_unwritten() const {
    MutexLock lock(mu_);
    int count = 0;
    for (const auto& [memory, bytes] : blocks_) {
      const auto* const begin = static_cast<const unsigned char*>(memory);
      const auto is_unwritten = [](unsigned char x) { return x == kUnwritten; };
      if (std::all_of(begin, begin + bytes, is_unwritten)) ++count;
    }
    return count;
  }
  bool Holds(const void* place) const {
    MutexLock lock(mu_);
    const auto next = blocks_.upper_bound(place);
    if (next == blocks_.begin()) return false;
    const auto& [memory, bytes] = *std::prev(next);
    return place < static_cast<const char*>(memory) + bytes;
  }
  // Graphs are part of it, too, at no address.
  bool Take(size_t bytes) {
    MutexLock lock(mu_);
    if (bytes > available_) return false;
    available_ -= bytes;
    return true;
  }
  void GiveBack(size_t bytes) {
    MutexLock lock(mu_);
    available_ += bytes;
  }
  size_t available() const {
    MutexLock lock(mu_);
    return available_;
  }
  void set_available(size_t bytes) {
    MutexLock lock(mu_);
    available_ = bytes;
  }

 private:
  mutable Mutex mu_;
  // Keys are their first bytes.
  std::map<const void*, size_t> blocks_ ABSL_GUARDED_BY(mu_);
  size_t available_ ABSL_GUARDED_BY(mu_);
};

struct Memory {
  Heap device{kDefaultMemory};
  Heap pinned{std::numeric_limits<size_t>::max()};
  std::atomic<size_t> graph_bytes = 0;
  std::atomic<bool> is_stream_refused = false;
  std::atomic<bool> is_event_refused = false;
  std::atomic<int> num_devices = 1;
  std::atomic<int> num_processors = 132;
  std::atomic<int64_t> num_waits = 0;
  std::atomic<int64_t> num_pageable_copies = 0;
};

Memory& TheMemory() {
  static Memory memory;
  return memory;
}

struct Loaded {
  Mutex mu;
  std::set<const void*> kernels ABSL_GUARDED_BY(mu);
};

Loaded& TheLoaded() {
  static Loaded loaded;
  return loaded;
}

int& ThreadsDevice() {
  thread_local int device = 0;
  return device;
}

uint64_t NumGiven(CUstream_st& stream) {
  MutexLock lock(stream.mu);
  return stream.num_given;
}

// The first command, if it is one of the first `place` that were given.
Command TakeBefore(uint64_t place, CUstream_st& stream) {
  MutexLock lock(stream.mu);
  if (stream.num_taken >= std::min(place, stream.num_given)) return nullptr;
  Command command = std::move(stream.queue.front());
  stream.queue.pop_front();
  ++stream.num_taken;
  return command;
}

void RunUpTo(uint64_t place, CUstream_st& stream) {
  MutexLock lock(stream.running);
  while (const Command command = TakeBefore(place, stream)) command();
}

}  // namespace

void NoteLoaded(const void* kernel) {
  MutexLock lock(TheLoaded().mu);
  TheLoaded().kernels.insert(kernel);
}
int NumLoaded() {
  MutexLock lock(TheLoaded().mu);
  return static_cast<int>(TheLoaded().kernels.size());
}
void ForgetLoaded() {
  MutexLock lock(TheLoaded().mu);
  TheLoaded().kernels.clear();
}

int NumDevices() { return TheMemory().num_devices; }
void SetNumDevices(int num_devices) { TheMemory().num_devices = num_devices; }
bool UseDevice(int device) {
  if (device >= NumDevices()) return false;
  ThreadsDevice() = device;
  return true;
}
int UsedDevice() { return ThreadsDevice(); }
int NumProcessors() { return TheMemory().num_processors; }
void SetNumProcessors(int count) { TheMemory().num_processors = count; }

void Submit(Stream stream, Command command) {
  if (stream == nullptr) return command();
  if (stream->device != UsedDevice()) SetFailure("a stream of another device");
  if (stream->is_capturing) {
    stream->captured.push_back(std::move(command));
    return;
  }
  MutexLock lock(stream->mu);
  stream->queue.push_back(std::move(command));
  ++stream->num_given;
}

Stream NewStream() {
  return TheMemory().is_stream_refused ? nullptr : new CUstream_st;
}
void RefuseStreams(bool is_refused) {
  TheMemory().is_stream_refused = is_refused;
}
void DeleteStream(Stream stream) { delete stream; }

void WaitFor(Stream stream) {
  ++TheMemory().num_waits;
  if (stream != nullptr) RunUpTo(NumGiven(*stream), *stream);
}

Event NewEvent() {
  return TheMemory().is_event_refused ? nullptr : new CUevent_st;
}
void RefuseEvents(bool is_refused) {
  TheMemory().is_event_refused = is_refused;
}
void DeleteEvent(Event event) { delete event; }

void Record(Event event, Stream stream) {
  *event = {stream, stream == nullptr ? 0 : NumGiven(*stream)};
}

void WaitFor(Event event) {
  ++TheMemory().num_waits;
  if (event->stream != nullptr) RunUpTo(event->place, *event->stream);
}

int64_t NumWaits() { return TheMemory().num_waits; }

bool Capture(Stream stream) {
  return !std::exchange(stream->is_capturing, true);
}

Graph CapturedBy(Stream stream) {
  stream->is_capturing = false;
  return new CUgraphExec_st{std::exchange(stream->captured, {})};
}

Graph CopyOf(Graph graph) { return new CUgraphExec_st{graph->commands}; }

bool Upload(Graph graph) {
  const size_t bytes = TheMemory().graph_bytes;
  if (!TheMemory().device.Take(bytes)) return false;
  graph->bytes = bytes;
  return true;
}

void Replay(Graph graph, Stream stream) {
  for (const Command& command : graph->commands) Submit(stream, command);
}

void DeleteGraph(Graph graph) {
  TheMemory().device.GiveBack(graph->bytes);
  delete graph;
}

void SetGraphBytes(size_t bytes) { TheMemory().graph_bytes = bytes; }

void* NewMemory(size_t bytes) { return TheMemory().device.New(bytes); }
void DeleteMemory(void* memory) { TheMemory().device.Delete(memory); }
size_t AvailableMemory() { return TheMemory().device.available(); }
void SetAvailableMemory(size_t bytes) {
  TheMemory().device.set_available(bytes);
}

int NumUnwritten() { return TheMemory().device.num_unwritten(); }

void* NewPinned(size_t bytes) { return TheMemory().pinned.New(bytes); }
void DeletePinned(void* memory) { TheMemory().pinned.Delete(memory); }
void SetAvailablePinned(size_t bytes) {
  TheMemory().pinned.set_available(bytes);
}

void Copy(void* to, const void* from, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  Memory& memory = TheMemory();
  for (const void* const place : {static_cast<const void*>(to), from}) {
    if (!memory.device.Holds(place) && !memory.pinned.Holds(place)) {
      ++memory.num_pageable_copies;
    }
  }
  Submit(stream, [=] { std::memcpy(to, from, bytes); });
}

int64_t NumPageableCopies() { return TheMemory().num_pageable_copies; }

}  // namespace outrider::kernels::cuda::emulation
