// SPDX-License-Identifier: Apache-2.0
#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#include "core/kernels/cuda/emulation/runtime.h"
#endif

#include <utility>

#include "core/kernels/cuda/runtime.h"

namespace outrider::kernels::cuda {
namespace {

constexpr int kLeastMajor = 8;  // of the compute capability; CMakeLists.txt

// The thread's first error of a launch or a copy that nobody was told of: the
// runtime keeps the last error alone, and what may fail in peace takes its own
// away again.
cudaError_t& FirstError() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

void KeepError() {
  const cudaError_t error = cudaGetLastError();
  if (FirstError() == cudaSuccess) FirstError() = error;
}

// Takes what was kept of the errors of launches and copies, too, which came
// before this one.
std::string MessageOf(cudaError_t error) {
  const cudaError_t last = cudaGetLastError();
  if (error == cudaSuccess) error = last;
  const cudaError_t first = std::exchange(FirstError(), cudaSuccess);
  if (first != cudaSuccess) error = first;
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

// Those of the thread's device; false where there is none.
bool GetProperties(cudaDeviceProp* properties) {
  int device = 0;
  return cudaGetDevice(&device) == cudaSuccess &&
         cudaGetDeviceProperties(properties, device) == cudaSuccess;
}

// Where there is nothing to copy there may be no address, which a device need
// not take.
void Copy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
          Stream stream) {
  if (bytes > 0) cudaMemcpyAsync(to, from, bytes, kind, stream);
}

}  // namespace

std::string OpenDevice(int index) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return MessageOf(error);
  if (index >= count) {
    return "there are " + std::to_string(count) + " GPUs on this machine";
  }
  if (std::string failure = MessageOf(cudaSetDevice(index)); !failure.empty()) {
    return failure;
  }
  cudaDeviceProp properties;
  if (!GetProperties(&properties)) return MessageOf(cudaErrorNoDevice);
  const bool is_emulated = properties.major == 0;
  if (is_emulated || properties.major >= kLeastMajor) return "";
  return std::string(properties.name) +
         " is too old: the kernels need compute capability 8.0";
}

void UseDevice(int index) { cudaSetDevice(index); }

std::string DeviceName() {
  cudaDeviceProp properties;
  if (GetProperties(&properties)) return properties.name;
  return "no GPU: " + MessageOf(cudaErrorNoDevice);
}

std::string DeviceNumerics() {
  cudaDeviceProp properties;
  if (!GetProperties(&properties)) return "";
  if (properties.major == 0) return "cuda_emulated";
  return "cuda_sm" + std::to_string(10 * properties.major + properties.minor);
}

int NumProcessors() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  return count > 0 ? count : 1;
}

void* AllocateMemory(size_t bytes) {
  KeepError();
  void* memory = nullptr;
  if (cudaMalloc(&memory, bytes) == cudaSuccess) return memory;
  cudaGetLastError();  // out of memory is no failure of what follows
  return nullptr;
}

void FreeMemory(void* memory) { cudaFree(memory); }

size_t AvailableMemory() {
  size_t available = 0, total = 0;
  cudaMemGetInfo(&available, &total);
  return available;
}

void* AllocatePinned(size_t bytes) {
  KeepError();
  void* memory = nullptr;
  if (cudaMallocHost(&memory, bytes) == cudaSuccess) return memory;
  cudaGetLastError();  // the same
  return nullptr;
}

void FreePinned(void* memory) { cudaFreeHost(memory); }

std::string MakeStream(Stream* stream) {
  *stream = nullptr;
  return MessageOf(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
}

void DestroyStream(Stream stream) { cudaStreamDestroy(stream); }

void CopyToDevice(void* to, const void* from, size_t bytes, Stream stream) {
  Copy(to, from, bytes, cudaMemcpyHostToDevice, stream);
}

void CopyToHost(void* to, const void* from, size_t bytes, Stream stream) {
  Copy(to, from, bytes, cudaMemcpyDeviceToHost, stream);
}

void CopyOnDevice(void* to, const void* from, size_t bytes, Stream stream) {
  Copy(to, from, bytes, cudaMemcpyDeviceToDevice, stream);
}

void ZeroMemory(void* memory, size_t bytes, Stream stream) {
  if (bytes > 0) cudaMemsetAsync(memory, 0, bytes, stream);
}

std::string Synchronize(Stream stream) {
  return MessageOf(cudaStreamSynchronize(stream));
}

Event MakeEvent() {
  KeepError();
  cudaEvent_t event = nullptr;
  if (cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess) {
    return event;
  }
  cudaGetLastError();  // as above
  return nullptr;
}

void DestroyEvent(Event event) { cudaEventDestroy(event); }

std::string RecordEvent(Event event, Stream stream) {
  return MessageOf(cudaEventRecord(event, stream));
}

std::string AwaitEvent(Event event) {
  return MessageOf(cudaEventSynchronize(event));
}

bool BeginCapture(Stream stream) {
  KeepError();
  const bool has_begun =
      cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) ==
      cudaSuccess;
  if (!has_begun) cudaGetLastError();  // no failure of what follows
  return has_begun;
}

Graph EndCapture(Stream stream) {
  // A launch that failed is missing in the graph, so there is none; launched
  // without a capture it fails again, and Synchronize tells.
  const bool has_all = cudaGetLastError() == cudaSuccess;
  cudaGraph_t captured = nullptr;
  Graph graph = nullptr;
  if (cudaStreamEndCapture(stream, &captured) == cudaSuccess) {
    if (has_all) cudaGraphInstantiateWithFlags(&graph, captured, 0);
    cudaGraphDestroy(captured);
  }
  // Its memory is taken now, and its first launch is as fast as any.
  if (graph != nullptr && cudaGraphUpload(graph, stream) != cudaSuccess) {
    cudaGraphExecDestroy(graph);
    graph = nullptr;
  }
  if (graph == nullptr) cudaGetLastError();  // no failure of what follows
  return graph;
}

void LaunchGraph(Graph graph, Stream stream) { cudaGraphLaunch(graph, stream); }

void DestroyGraph(Graph graph) {
  if (graph != nullptr) cudaGraphExecDestroy(graph);
}

}  // namespace outrider::kernels::cuda
