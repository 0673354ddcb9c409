// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_GRAPH_SHAPES_H_
#define OUTRIDER_CORE_CUDA_MODEL_GRAPH_SHAPES_H_

#include <compare>
#include <optional>
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

// The shape that a step is padded to, so that few graphs serve all; nothing
// where the step is launched kernel by kernel. Tiles and their pairs with
// splits of the context are powers of two, and so are rows up to 64; beyond,
// they are multiples of 64, as a product takes so many at a time. Pairs are as
// many as attention takes at once, at most. Logits are those of all rows or of
// half of them: up to eight rows cost a head the same.
//
// Steps whose logits nobody wants, and longer ones where at most a quarter of
// the rows have some, are parts of prompts: they take the device longer than
// their launches take the host, and the head of what fills them up would be in
// vain. Nor are steps that have more pairs than attention takes at once, which
// are long for the device, too.
std::optional<StepShape> GraphBucket(const StepShape& shape,
                                     const StepLimits& step,
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
