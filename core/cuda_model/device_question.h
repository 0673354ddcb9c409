// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_DEVICE_QUESTION_H_
#define OUTRIDER_CORE_CUDA_MODEL_DEVICE_QUESTION_H_

#include <cmath>

#include "core/base/row_question.h"
#include "core/kernels/cuda/draw_next.h"
#include "core/kernels/cuda/score_rows.h"

// What sampling asks of a row of logits, as kernels take it.
namespace outrider {

// DrawRow::scale and TopRow::scale.
inline double ScaleOf(double temperature) {
  return temperature > 0 ? M_LOG2E / temperature : 0;
}

inline kernels::cuda::MovedLogit MovedLogitOf(const MovedToken& moved) {
  return {.bias = moved.bias,
          .token = moved.token,
          .num_generated = moved.num_generated};
}

// The next draw of a session; its rows are for whoever knows them.
inline kernels::cuda::DrawSession SessionOf(const NextDraw& next) {
  return {.has_rest = next.top_k == 0 && next.min_p == 0,
          .min_p = next.min_p,
          .top_p = next.top_p,
          .support_size = next.support_size,
          .support_mass = next.support_mass,
          .round_weights = next.round_weights,
          .min_probability = next.min_probability,
          .probability = next.probability,
          .is_coupled = next.is_coupled,
          .seed = next.seed,
          .generation = next.generation,
          .position = next.position};
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_DEVICE_QUESTION_H_
