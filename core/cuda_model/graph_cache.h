// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_GRAPH_CACHE_H_
#define OUTRIDER_CORE_CUDA_MODEL_GRAPH_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "core/cuda_model/step_inputs.h"
#include "core/kernels/cuda/gpu.h"

namespace outrider {

// What a graph launches: a step's layers, and before or after them what is
// asked of rows of logits.
struct GraphShape {
  StepShape step = {};
  bool draws_next = false;  // the step's tokens come from the rows before
  bool has_draws = false;   // of its rows: DrawRow, TopRow
  bool has_tops = false;

  auto operator<=>(const GraphShape&) const = default;
};

// Launches of one shape as a graph, which costs the host one call in place of
// hundreds. Whatever differs between two steps of a shape, kernels must read
// from the device's memory. Where there are too many shapes, the one that was
// asked for longest ago makes room.
class GraphCache {
 public:
  static constexpr size_t kMaxGraphs = 512;

  explicit GraphCache(std::shared_ptr<kernels::cuda::Gpu> gpu)
      : gpu_(std::move(gpu)) {}
  ~GraphCache() { Clear(); }
  GraphCache(GraphCache&&) = default;
  GraphCache& operator=(GraphCache&&) = delete;

  // `launch` asks the GPU for what a step of this shape is. The first time it
  // is done at once: that also loads the kernels, which capturing must not. The
  // second time it is captured; where the device takes no such graph, that and
  // every time after it are done as the first one.
  void Run(const GraphShape& shape, absl::FunctionRef<void()> launch);
  // Gives all of them back: what they name is to go.
  void Clear();

  int64_t num_replays() const { return num_replays_; }
  int64_t num_captured() const { return num_captured_; }  // and kept

 private:
  struct Kept {
    kernels::cuda::Graph graph = nullptr;
    bool is_refused = false;
    int64_t last_use = 0;
  };

  void Destroy(const Kept& kept);
  void DropOldest();

  std::shared_ptr<kernels::cuda::Gpu> gpu_;
  std::map<GraphShape, Kept> graphs_;
  int64_t num_uses_ = 0;
  int64_t num_replays_ = 0;
  int64_t num_captured_ = 0;
};

// The shape that a step is padded to, so that few graphs serve all: powers of
// two, of positions those of whole splits.
StepShape BucketOf(const StepShape& shape);
// StepShape::longest of the bucket of steps whose longest session is this.
int LongestOfBucket(int longest);

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_GRAPH_CACHE_H_
