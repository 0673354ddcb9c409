// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_ROW_SCORER_H_
#define OUTRIDER_CORE_CUDA_MODEL_ROW_SCORER_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/row_question.h"
#include "core/cuda_model/answer_threads.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/pinned_pool.h"
#include "core/cuda_model/wanted_row.h"
#include "core/kernels/cuda/score_rows.h"
#include "core/kernels/cuda/top_rows.h"
#include "core/model/causal_lm.h"

namespace outrider {

// Brings rows of logits from a GPU to the host: by what is asked of them, and
// whole where nothing is, or where the answer is not enough. Whether it is
// depends on the row and its question alone. Memory of its own, taken once.
class RowScorer {
 public:
  struct Options {
    int max_rows = 0;    // at a time
    int vocab_size = 0;  // of the head: up to kMaxTopVocabulary
    size_t most_pinned_bytes = size_t{256} << 20;  // others are not pinned
    std::shared_ptr<AnswerThreads> threads = {};   // of TakeAnswers; not null
  };

  // RESOURCE_EXHAUSTED: no memory, on the device or pinned. `counters` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<RowScorer>> Make(
      std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
      const Options& options);
  // One for rows that come while those of this one are on their way: with
  // pinned memory of its own, and the same on the device. Fails as Make does.
  absl::StatusOr<std::unique_ptr<RowScorer>> MakeTwin() const;

  // They come in this order, and none awaits the device. `logits` is
  // [rows.size(), vocab_size] when it comes to Answer, which may be captured:
  // it launches the same whatever was asked with as many `num_rows`, of which
  // there may be more than rows.
  void Ask(const float* logits, absl::Span<WantedRow> rows, int num_rows);
  void Answer(int num_rows) const;
  // Answers, and rows that have no question, which come whole.
  // RESOURCE_EXHAUSTED: no host memory for these. What was asked for before is
  // still on its way.
  absl::Status Download(const float* logits, absl::Span<WantedRow> rows);
  // Once the device has done that: the answers.
  void TakeAnswers(absl::Span<WantedRow> rows);
  // Rows whose answer does not decide, as they lie at `logits` now: awaits
  // them. Fails as Download does. UNAVAILABLE: the device is lost.
  absl::Status FetchOthers(const float* logits, absl::Span<WantedRow> rows);

 private:
  // What goes there and comes back, at the same places on both sides, in arrays
  // as long as num_rows need: no copy takes what fewer rows leave out.
  struct Buffers {
    kernels::cuda::DrawRow* draws = nullptr;     // [num_rows]
    kernels::cuda::TopRow* tops = nullptr;       // [num_rows]
    int* tokens = nullptr;                       // [max_tokens]
    kernels::cuda::MovedLogit* moved = nullptr;  // [max_tokens]

    kernels::cuda::DrawRowResult* drawn = nullptr;  // [num_rows]
    kernels::cuda::TopRowResult* found = nullptr;   // [num_rows]
    float* token_values = nullptr;                  // [max_tokens]
    int* ids = nullptr;                             // [max_top]
    float* top_logits = nullptr;                    // [max_top]
  };
  // How much of them is in use.
  struct Used {
    int num_draws = 0;
    int num_tops = 0;
    int num_tokens = 0;
    int num_top = 0;
    int num_moved = 0;
  };

  RowScorer(std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
            const Options& options);
  RowScorer(const RowScorer&) = default;

  // Where the buffers are in `memory`; without memory, how large they are.
  size_t Place(void* memory, int num_rows, Buffers& buffers) const;
  Buffers DeviceBuffers(int num_rows) const;
  absl::Status TakePinned();
  bool IsAnswerable(const WantedRow& row) const;
  // Host memory for a whole row.
  absl::StatusOr<float*> MakeRow(WantedRow& wanted);
  void AskDraw(const float* row, const RowQuestion& question);
  void AskTop(const float* row, const RowQuestion& about,
              const TopQuestion& top);
  // The next answers, in the order in which they were asked for; nothing where
  // the whole row is wanted after all.
  std::optional<RowAnswer> TakeDraw(const DrawQuestion& question,
                                    Used& taken) const;
  std::optional<RowAnswer> TakeTop(const TopQuestion& question,
                                   Used& taken) const;

  const std::shared_ptr<Gpu> gpu_;
  DeviceCounters& counters_;
  const Options options_;
  PinnedPool rows_;
  std::shared_ptr<const std::vector<DeviceMemory>> memory_;
  std::shared_ptr<void> pinned_;
  // Those of what was asked last.
  Used used_ = {};
  Buffers device_ = {};
  Buffers host_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_ROW_SCORER_H_
