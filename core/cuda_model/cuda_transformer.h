// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_CUDA_TRANSFORMER_H_
#define OUTRIDER_CORE_CUDA_MODEL_CUDA_TRANSFORMER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/cuda_model/cuda_limits.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/graph_cache.h"
#include "core/cuda_model/graph_shapes.h"
#include "core/cuda_model/rows_in_flight.h"
#include "core/cuda_model/step_arena.h"
#include "core/cuda_model/step_in_flight.h"
#include "core/cuda_model/step_inputs.h"
#include "core/cuda_model/wanted_row.h"
#include "core/cuda_model/weights.h"
#include "core/model/model_config.h"

namespace outrider {

// The forward pass on a GPU: one stream, and memory of its own that is taken
// once, so that nothing but the KV blocks can be missing later.
class CudaTransformer {
 public:
  // UNIMPLEMENTED: sizes that the kernels do not take.
  static absl::Status Check(const ModelConfig& config);
  static absl::StatusOr<std::unique_ptr<CudaTransformer>> Make(
      std::shared_ptr<Gpu> gpu, const ModelConfig& config, CudaWeights weights,
      const CudaLimits& limits);

  static int64_t KvBlockBytes(const ModelConfig& config);
  // RESOURCE_EXHAUSTED: no memory for them.
  absl::Status AllocateKvBlocks(int num_blocks);
  void FreeKvBlocks();  // and the graphs that name them
  // Captures graphs of all shapes that steps can have, or of as many as the
  // limits allow; how many shapes there are. UNAVAILABLE: the device is lost.
  absl::StatusOr<size_t> CaptureGraphs();
  // They are made before the next step. No block that one writes is another's.
  struct KvBlockCopy {
    KvBlockId from = 0;
    KvBlockId to = 0;
  };
  void CopyKvBlocks(absl::Span<const KvBlockCopy> copies);

  // Valid once blocks are allocated.
  const StepLimits& step_limits() const { return step_limits_; }
  // Each serves one step after the other, in turns.
  StepInFlight& step_in_flight(int i) { return in_flight_[i]; }
  // Launches a step, which it may pad, and goes on where extensions may.
  void Launch(StepInputs& step, absl::Span<WantedRow> rows,
              StepInFlight& flight);
  // Awaits it, and brings its rows of logits, beside the launch of another one.
  //   RESOURCE_EXHAUSTED   no host memory for whole rows
  //   UNAVAILABLE          the device is lost
  absl::Status Bring(absl::Span<WantedRow> rows, StepInFlight& flight);
  const DeviceCounters& counters() const { return *counters_; }
  int vocab_size() const { return config_.vocab_size; }

 private:
  CudaTransformer(std::shared_ptr<Gpu> gpu, const ModelConfig& config,
                  CudaWeights weights, const CudaLimits& limits);

  void Keep(DeviceMemory memory);
  absl::Status AllocateArena();
  absl::Status UploadAngles();
  absl::Status MakeStepsInFlight();
  DrawLoop& loop() { return *in_flight_[0].loop; }  // as all on the device
  // A step, and what is asked of its rows.
  void RunStep(StepInputs& step, absl::Span<WantedRow> rows, RowScorer& scorer);
  // What follows for those who go on.
  void RunLoop(DrawLoop& loop);
  // A step, or one of a loop, whose inputs and questions are on the device: as
  // a graph, or kernel by kernel.
  void RunGraph(const GraphShape& shape);
  void Launch(const GraphShape& shape);
  // Launches what steps launch, for rows that nobody asked for, which loads the
  // kernels; of each number of rows, before graphs take what memory there is.
  absl::Status LoadKernels(absl::Span<const GraphShape> shapes);
  absl::Status LoadKernelsOf(const GraphShape& shape);
  absl::Status Finish() { return StatusOfDevice(gpu_->Finish()); }
  // The layers, up to the residual stream's last state.
  void RunLayers(const StepArrays& inputs, const StepShape& shape);
  void RunAttention(const StepArrays& inputs, const StepShape& shape,
                    int layer);
  // The head, of `count` of the rows.
  void RunHead(const int* logit_rows, int count, float* logits);
  void Normalize(const CudaNorm& norm, const int* rows, int num_rows);
  void Multiply(const CudaLinear& linear, const void* x, int num_rows,
                kernels::cuda::Epilogue epilogue, void* y);

  std::shared_ptr<Gpu> gpu_;
  ModelConfig config_;
  CudaWeights weights_;
  CudaLimits limits_;
  kernels::cuda::Element element_;
  kernels::cuda::Heads heads_;
  StepLimits step_limits_ = {};
  StepArena arena_ = {};
  std::vector<DeviceMemory> memory_;  // of arena and angles
  std::optional<DeviceMemory> kv_memory_;
  std::vector<kernels::cuda::KvLayer> kv_;
  GraphCache graphs_;
  std::unique_ptr<DeviceCounters> counters_;
  std::vector<StepInFlight> in_flight_;
  std::unique_ptr<RowsInFlight> rows_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_CUDA_TRANSFORMER_H_
