// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_ORDER_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_ORDER_H_

#include "core/kernels/cuda/emulation/stream.h"

// Part of runtime.h: streams, events and graphs, which say what is done when.
namespace emulated = outrider::kernels::cuda::emulation;

// NOLINTBEGIN: the names are CUDA's.
enum cudaError_t {
  cudaSuccess,
  cudaErrorMemoryAllocation,
  cudaErrorNoDevice,
  cudaErrorLaunchFailure
};
using cudaGraph_t = CUgraphExec_st*;  // of the same type here
using cudaEvent_t = CUevent_st*;
constexpr int cudaStreamNonBlocking = 1, cudaStreamCaptureModeThreadLocal = 1,
              cudaEventDisableTiming = 2;

inline cudaError_t cudaStreamCreateWithFlags(CUstream_st** stream, int) {
  *stream = emulated::NewStream();
  return *stream == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(CUstream_st* stream) {
  return emulated::DeleteStream(stream), cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(CUstream_st* stream) {
  return emulated::WaitFor(stream), cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, int) {
  *event = emulated::NewEvent();
  return *event == nullptr ? cudaErrorMemoryAllocation : cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return emulated::DeleteEvent(event), cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t event, CUstream_st* stream) {
  return emulated::Record(event, stream), cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return emulated::WaitFor(event), cudaSuccess;
}
inline cudaError_t cudaStreamBeginCapture(CUstream_st* stream, int) {
  return emulated::Capture(stream) ? cudaSuccess : cudaErrorLaunchFailure;
}
inline cudaError_t cudaStreamEndCapture(CUstream_st* stream,
                                        cudaGraph_t* graph) {
  return *graph = emulated::CapturedBy(stream), cudaSuccess;
}
inline cudaError_t cudaGraphInstantiateWithFlags(CUgraphExec_st** graph,
                                                 cudaGraph_t captured, int) {
  return *graph = emulated::CopyOf(captured), cudaSuccess;
}
inline cudaError_t cudaGraphUpload(CUgraphExec_st* graph, CUstream_st*) {
  return emulated::Upload(graph) ? cudaSuccess : cudaErrorMemoryAllocation;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t captured) {
  return emulated::DeleteGraph(captured), cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(CUgraphExec_st* graph, CUstream_st* stream) {
  return emulated::Replay(graph, stream), cudaSuccess;
}
inline cudaError_t cudaGraphExecDestroy(CUgraphExec_st* graph) {
  return emulated::DeleteGraph(graph), cudaSuccess;
}
// NOLINTEND

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_RUNTIME_ORDER_H_
