// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_CUDA_TRANSFORMER_H_
#define OUTRIDER_CORE_CUDA_MODEL_CUDA_TRANSFORMER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cuda_model/cuda_limits.h"
#include "core/cuda_model/device_memory.h"
#include "core/cuda_model/draw_loop.h"
#include "core/cuda_model/graph_cache.h"
#include "core/cuda_model/graph_shapes.h"
#include "core/cuda_model/row_scorer.h"
#include "core/cuda_model/step_inputs.h"
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
  // limits allow; how many shapes there are. `step_memory` is pinned, of
  // StepArrays::Bytes. UNAVAILABLE: the device is lost.
  absl::StatusOr<size_t> CaptureGraphs(void* step_memory);
  void CopyKvBlock(KvBlockId from, KvBlockId to);  // before the next step

  // Valid once blocks are allocated.
  const StepLimits& step_limits() const { return step_limits_; }
  // Runs a step, goes on where extensions may, and brings the rows of logits.
  // May pad the step.
  //   RESOURCE_EXHAUSTED   no host memory for whole rows
  //   UNAVAILABLE          the device is lost
  absl::Status Run(StepInputs& step, absl::Span<WantedRow> rows);
  const DeviceCounters& counters() const { return *counters_; }

 private:
  // Memory of the device, for the largest step.
  struct Arena {
    StepArrays inputs = {};
    float* x = nullptr;          // [rows, hidden]: the residual stream
    void* normed = nullptr;      // [rows, hidden]
    float* qkv = nullptr;        // [rows, query_size + 2 * kv_size]
    void* queries = nullptr;     // [rows, query_size]
    void* attended = nullptr;    // [rows, query_size]
    void* inner = nullptr;       // [rows, intermediate]
    float* logits = nullptr;     // [rows, vocab]
    float* attention = nullptr;  // what attention leaves to its merge
    const float* cos = nullptr;
    const float* sin = nullptr;
  };

  CudaTransformer(std::shared_ptr<Gpu> gpu, const ModelConfig& config,
                  CudaWeights weights, const CudaLimits& limits);

  void Keep(DeviceMemory memory);
  absl::Status AllocateArena();
  absl::Status UploadAngles();
  // A step, and what is asked of its rows.
  void RunStep(StepInputs& step, absl::Span<const WantedRow> rows);
  // What follows for those who go on.
  void RunLoop();
  // A step, or one of a loop, whose inputs and questions are on the device: as
  // a graph, or kernel by kernel.
  void RunGraph(const GraphShape& shape);
  void Launch(const GraphShape& shape);
  // Launches a step of rows that nobody asked for, which loads its kernels.
  absl::Status LoadKernels(const GraphShape& shape, void* step_memory);
  // Awaits the device, and brings what is known of the rows.
  absl::Status Bring(absl::Span<WantedRow> rows);
  absl::Status Finish();
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
  size_t attention_floats_ = 0;
  Arena arena_ = {};
  std::vector<DeviceMemory> memory_;  // of arena and angles
  std::optional<DeviceMemory> kv_memory_;
  std::vector<kernels::cuda::KvLayer> kv_;
  GraphCache graphs_;
  std::unique_ptr<DeviceCounters> counters_;
  std::unique_ptr<RowScorer> scorer_;
  std::unique_ptr<DrawLoop> loop_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_CUDA_TRANSFORMER_H_
