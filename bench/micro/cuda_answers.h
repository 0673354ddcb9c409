// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_CUDA_ANSWERS_H_
#define OUTRIDER_BENCH_MICRO_CUDA_ANSWERS_H_

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "bench/micro/decoder_part.h"
#include "core/cuda_model/device_memory.h"
#include "core/kernels/cuda/draw_next.h"
#include "core/kernels/cuda/gpu.h"
#include "core/kernels/cuda/score_rows.h"
#include "core/kernels/cuda/top_rows.h"

namespace outrider {

// The kernels that answer questions about rows of logits, as RowScorer and
// DrawLoop ask for them: of each row so many of its greatest logits, or the
// weights of a support of so many tokens. Confined to one thread.
class CudaAnswers {
 public:
  static absl::StatusOr<std::unique_ptr<CudaAnswers>> Make(
      std::shared_ptr<Gpu> gpu, int vocab_size, int max_rows);

  // The rows stand at `logits`. A token is drawn by a kernel that changes
  // what it drew from: a copy of 100 bytes a row, which is timed with it, puts
  // that back.
  absl::StatusOr<std::vector<DecoderPart>> Parts(const float* logits,
                                                 int num_rows);

 private:
  // What is asked with one number of tokens or logits, and what comes of it.
  struct Asked {
    int count = 0;
    const char *top_name = "", *draw_name = "", *score_name = "";
    kernels::cuda::TopRow* tops = nullptr;
    kernels::cuda::DrawRow* draws = nullptr;
    kernels::cuda::TopRowResult* found = nullptr;
    int* ids = nullptr;
    float* top_logits = nullptr;
    int* support = nullptr;
    float* weights = nullptr;
    // Sessions and their rows, before a token is drawn and where it is drawn.
    char *before = nullptr, *drawn = nullptr;
  };

  CudaAnswers(std::shared_ptr<Gpu> gpu, int vocab_size, int max_rows)
      : gpu_(std::move(gpu)), vocab_size_(vocab_size), max_rows_(max_rows) {}

  absl::Status Allocate();
  template <typename T>
  absl::Status Allocate(T*& piece, size_t count);
  absl::Status Upload(const Asked& asked, const float* logits, int num_rows);
  void FindTop(const Asked& asked, int num_rows);
  void DrawNext(const Asked& asked, const float* logits, int num_rows);
  void Score(const Asked& asked, int num_rows);

  const std::shared_ptr<Gpu> gpu_;
  const int vocab_size_;
  const int max_rows_;
  std::vector<DeviceMemory> memory_;
  std::array<Asked, 3> asked_ = {};
  // The step that comes after a token is drawn has one of each for a row.
  int *tokens_ = nullptr, *positions_ = nullptr, *blocks_ = nullptr;
  int* tables_ = nullptr;
  kernels::cuda::AttentionTile* tiles_ = nullptr;
  kernels::cuda::DrawnRow* records_ = nullptr;
  kernels::cuda::DrawRowResult* answers_ = nullptr;
  char* scratch_ = nullptr;
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_CUDA_ANSWERS_H_
