// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_DRAW_LOOP_H_
#define OUTRIDER_CORE_CUDA_MODEL_DRAW_LOOP_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cuda_model/answer_threads.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/pinned_pool.h"
#include "core/cuda_model/step_inputs.h"
#include "core/cuda_model/wanted_row.h"
#include "core/kernels/cuda/draw_next.h"

namespace outrider {

// Steps of one token a session that follow one another without a word from the
// host: each begins by drawing its tokens from the rows of the step before.
// Tokens, positions and what is left to do live in the device's memory; what
// was found of the rows comes to the host at the end. Memory of its own, taken
// once.
class DrawLoop {
 public:
  struct Options {
    int max_rows = 0;    // of all its steps together
    int vocab_size = 0;  // of the head
    StepLimits step = {};
    std::shared_ptr<AnswerThreads> threads = {};  // who takes rows; not null
  };

  // RESOURCE_EXHAUSTED: no memory, on the device or pinned. `counters` must
  // outlive it.
  static absl::StatusOr<std::unique_ptr<DrawLoop>> Make(
      std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
      const Options& options);
  // One for a loop that is begun while this one is on its way; see RowScorer.
  absl::StatusOr<std::unique_ptr<DrawLoop>> MakeTwin() const;

  // KV blocks have been set up: nobody reads this one.
  void set_spare_block(KvBlockId block) { options_.step.spare_block = block; }

  // Takes in, of those that may go on, all that there is room for: their rows'
  // goes_on. Row i will be at `logits` + i * vocab_size when the loop begins.
  void Begin(const float* logits, absl::Span<WantedRow> rows);
  // What each step may take.
  const StepLimits& limits() const { return options_.step; }
  bool empty() const { return sessions_.empty(); }
  int num_steps() const { return num_steps_; }
  // The shape of each step; PadTo is as for any step, and comes before Upload.
  const StepShape& shape() const { return inputs_->shape(); }
  void PadTo(const StepShape& shape) { inputs_->PadTo(shape); }
  void Upload();
  // What a step reads, and where its head leaves its rows.
  const StepArrays& inputs() const { return device_inputs_; }
  float* logits() const { return device_.logits; }
  // Looks at the rows that are there, and draws the tokens of the next step: of
  // so many sessions, those that fill up the step included. May be captured.
  // Once more after the last step.
  void Draw(int num_sessions);
  void Download();
  // Once the device has done all that: what came of the rows.
  void Take(absl::Span<WantedRow> rows);

 private:
  // What goes there and comes back, at the same places on both sides.
  struct Buffers {
    kernels::cuda::DrawSession* sessions = nullptr;  // [max_sessions]
    kernels::cuda::TopRow* rows = nullptr;           // [max_sessions]
    void* inputs = nullptr;                          // StepArrays

    kernels::cuda::DrawnRow* records = nullptr;    // [max_rows]
    int* ids = nullptr;                            // [max_rows, most_top]
    float* top_logits = nullptr;                   // [max_rows, most_top]
    kernels::cuda::TopRowResult* found = nullptr;  // on the device only
    float* logits = nullptr;                       // the same
  };
  struct Session {
    int first_record = 0;
    int first_top = 0;
    int num_rows = 0;  // at most
  };

  DrawLoop(std::shared_ptr<Gpu> gpu, DeviceCounters& counters,
           const Options& options);
  DrawLoop(const DrawLoop&) = default;

  absl::Status TakePinned();
  // Where the buffers are in `memory`; without memory, how large they are.
  size_t Place(void* memory, bool is_device, Buffers& buffers) const;
  bool Add(const float* row, const Extension& extension);
  void TakeOne(const Session& session, WantedRow& row);

  const std::shared_ptr<Gpu> gpu_;
  DeviceCounters& counters_;
  Options options_;
  PinnedPool pool_;
  std::shared_ptr<const DeviceMemory> memory_;
  std::shared_ptr<void> pinned_;
  Buffers device_ = {};
  Buffers host_ = {};
  StepArrays device_inputs_ = {};
  // The loop that was begun last:
  std::optional<StepInputs> inputs_;
  std::vector<Session> sessions_;
  int num_steps_ = 0;
  int num_records_ = 0;
  int num_top_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_DRAW_LOOP_H_
