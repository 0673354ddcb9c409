// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_CUDA_LIMITS_H_
#define OUTRIDER_CORE_CUDA_MODEL_CUDA_LIMITS_H_

#include <chrono>
#include <cstddef>

#include "core/cuda_model/answer_threads.h"

namespace outrider {

// How large the passes are that a model on a GPU makes memory ready for.
struct CudaLimits {
  int rows = 512;          // tokens of a step; a longer pass takes several
  int graph_rows = 512;    // steps of up to so many tokens become graphs
  int loop_sessions = 64;  // who draw tokens in a row in one pass
  int drawn_rows = 512;    // of all that they draw
  // What capturing graphs before a node serves may take, of time (none: it is
  // not done) and of the device's memory. Each graph that is left out is
  // captured when its shape comes.
  std::chrono::seconds capture_time{60};
  size_t capture_bytes = size_t{1} << 30;
  // What no graph takes of the device's memory, whenever it is captured: a
  // launch may need some of its own.
  size_t spare_bytes = size_t{128} << 20;
  // What the parts of attention may take, those of all sessions and splits of
  // their contexts; more than fit take several launches, and are in no graph.
  // So there are 4096 pairs of tiles and splits for eight heads of 128
  // elements: a round of 64 sessions at K = 4, all of 8192 positions, with up
  // to six query heads a key head.
  size_t attention_floats = size_t{65} << 20;
  AnswerThreads::Options answers = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_CUDA_LIMITS_H_
