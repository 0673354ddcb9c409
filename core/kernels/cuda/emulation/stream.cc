// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/emulation/stream.h"

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

using outrider::kernels::cuda::emulation::Command;

// CUDA's names for what its handles point to.
struct CUgraphExec_st {
  std::vector<Command> commands;
  size_t bytes;  // of the device's memory
};
struct CUstream_st {
  std::vector<Command> queue;
  bool is_capturing = false;
  std::vector<Command> captured;
};

namespace outrider::kernels::cuda::emulation {
namespace {

constexpr size_t kAlignment = 256;
constexpr size_t kDefaultMemory = size_t{256} << 20;

// Blocks by their first byte. Any thread may give memory back.
struct Memory {
  std::mutex mutex;
  std::map<const void*, size_t> device;
  std::map<const void*, size_t> pinned;
  size_t available = kDefaultMemory;
  size_t graph_bytes = 0;
  size_t available_pinned = std::numeric_limits<size_t>::max();
};

Memory& TheMemory() {
  static Memory memory;
  return memory;
}

void* Allocate(size_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kAlignment, bytes) != 0) return nullptr;
  std::memset(memory, 0xFF, bytes);
  return memory;
}

// Whether one of the blocks has this byte.
bool IsIn(const std::map<const void*, size_t>& blocks, const void* byte) {
  const auto after = blocks.upper_bound(byte);
  if (after == blocks.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return byte < static_cast<const char*>(begin) + size;
}

bool IsReadLater(const void* memory) {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return IsIn(all.pinned, memory) || IsIn(all.device, memory);
}

}  // namespace

void Submit(Stream stream, Command command) {
  if (stream == nullptr) return command();
  auto& commands = stream->is_capturing ? stream->captured : stream->queue;
  commands.push_back(std::move(command));
}

Stream NewStream() { return new CUstream_st; }
void DeleteStream(Stream stream) { delete stream; }

void WaitFor(Stream stream) {
  if (stream == nullptr) return;
  for (const Command& command : std::exchange(stream->queue, {})) command();
}

void Capture(Stream stream) { stream->is_capturing = true; }

Graph CapturedBy(Stream stream) {
  stream->is_capturing = false;
  std::vector<Command> commands = std::exchange(stream->captured, {});
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (all.graph_bytes > all.available) return nullptr;
  all.available -= all.graph_bytes;
  return new CUgraphExec_st{std::move(commands), all.graph_bytes};
}

void Replay(Graph graph, Stream stream) {
  for (const Command& command : graph->commands) Submit(stream, command);
}

void DeleteGraph(Graph graph) {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.available += graph->bytes;
  delete graph;
}

void SetGraphBytes(size_t bytes) {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.graph_bytes = bytes;
}

void* NewMemory(size_t bytes) {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (bytes > all.available) return nullptr;
  void* memory = Allocate(bytes);
  if (memory == nullptr) return nullptr;
  all.available -= bytes;
  all.device[memory] = bytes;
  return memory;
}

void DeleteMemory(void* memory) {
  if (memory == nullptr) return;
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.available += all.device.at(memory);
  all.device.erase(memory);
  std::free(memory);
}

size_t AvailableMemory() {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  return all.available;
}

void SetAvailableMemory(size_t bytes) {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.available = bytes;
}

void* NewPinned(size_t bytes) {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  if (bytes > all.available_pinned) return nullptr;
  void* memory = Allocate(bytes);
  if (memory == nullptr) return nullptr;
  all.available_pinned -= bytes;
  all.pinned[memory] = bytes;
  return memory;
}

void DeletePinned(void* memory) {
  if (memory == nullptr) return;
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.available_pinned += all.pinned.at(memory);
  all.pinned.erase(memory);
  std::free(memory);
}

void SetAvailablePinned(size_t bytes) {
  Memory& all = TheMemory();
  const std::lock_guard<std::mutex> lock(all.mutex);
  all.available_pinned = bytes;
}

void Copy(void* to, const void* from, size_t bytes, Stream stream) {
  if (bytes == 0) return;
  if (stream == nullptr || IsReadLater(from)) {
    Submit(stream, [=] { std::memcpy(to, from, bytes); });
    return;
  }
  const auto* begin = static_cast<const char*>(from);
  Submit(stream, [to, kept = std::vector<char>(begin, begin + bytes)] {
    std::memcpy(to, kept.data(), kept.size());
  });
}

}  // namespace outrider::kernels::cuda::emulation
