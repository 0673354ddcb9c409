// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_GRAPH_CACHE_H_
#define OUTRIDER_CORE_CUDA_MODEL_GRAPH_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/cuda_model/graph_shapes.h"
#include "core/kernels/cuda/gpu.h"

namespace outrider {

// Launches of one shape as a graph, which costs the host one call in place of
// hundreds. Whatever differs between two steps of a shape, kernels must read
// from the device's memory. There are no more of them than AllGraphShapes.
class GraphCache {
 public:
  // Run captures no graph where the device has fewer bytes left than
  // `spare_bytes`.
  explicit GraphCache(std::shared_ptr<kernels::cuda::Gpu> gpu,
                      size_t spare_bytes = 0)
      : gpu_(std::move(gpu)), spare_bytes_(spare_bytes) {}
  ~GraphCache() { Clear(); }
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // In each, `launch` asks the GPU for what a step of this shape is.
  //
  // Captures it before a step of its shape comes. All its kernels have been
  // launched once: capturing must not load them. False where the device takes
  // no such graph: its steps are then launched kernel by kernel.
  bool Capture(const GraphShape& shape, absl::FunctionRef<void()> launch);
  // Launches its graph. A shape that was not captured is launched kernel by
  // kernel the first time, which loads them, and captured the second time, if
  // the device takes it.
  void Run(const GraphShape& shape, absl::FunctionRef<void()> launch);
  // Gives all of them back: what they name is to go.
  void Clear();

  int64_t num_replays() const { return num_replays_; }
  int64_t num_captured() const { return num_captured_; }
  int64_t num_late() const { return num_late_; }  // captured by Run

 private:
  struct Kept {
    kernels::cuda::Graph graph = nullptr;
    bool is_refused = false;
  };

  bool Capture(const GraphShape& shape, absl::FunctionRef<void()> launch,
               Kept& kept);
  static void Refuse(const GraphShape& shape, Kept& kept);

  std::shared_ptr<kernels::cuda::Gpu> gpu_;
  const size_t spare_bytes_;
  std::map<GraphShape, Kept> graphs_;
  int64_t num_replays_ = 0;
  int64_t num_captured_ = 0;
  int64_t num_late_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_GRAPH_CACHE_H_
