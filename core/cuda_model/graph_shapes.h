// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_GRAPH_SHAPES_H_
#define OUTRIDER_CORE_CUDA_MODEL_GRAPH_SHAPES_H_

#include <compare>
#include <vector>

#include "core/cuda_model/cuda_limits.h"
#include "core/cuda_model/step_inputs.h"

namespace outrider {

// What a graph launches: a step's layers, its head, and before or after them
// what is asked of rows of logits.
struct GraphShape {
  StepShape step = {};
  bool draws_next = false;  // the step's tokens come from the rows before

  auto operator<=>(const GraphShape&) const = default;
};

// The shape that a step is padded to, so that few graphs serve all: powers of
// two, of positions those of whole splits. Logits are those of all rows or of
// half of them: up to eight rows cost a head the same.
StepShape BucketOf(const StepShape& shape);
// StepShape::longest of the bucket of steps whose longest session is this.
int LongestOfBucket(int longest);

// Whether steps of this bucket become a graph. Those of many tokens, or whose
// logits nobody wants, are parts of prompts: they take the device longer than
// their launches take the host.
bool IsGraph(const StepShape& bucket, const StepLimits& step,
             const CudaLimits& limits);

// Every shape that can become a graph, of a model whose positions end there:
// of steps as they come, and of those that a draw loop runs. Short sessions
// come first, then few rows.
std::vector<GraphShape> AllGraphShapes(const StepLimits& step,
                                       const StepLimits& loop,
                                       const CudaLimits& limits,
                                       int context_length);

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_GRAPH_SHAPES_H_
