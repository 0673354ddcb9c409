// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/load_cuda.h"

#include <ATen/ATen.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/cuda_causal_lm.h"

namespace outrider {
namespace {

using kernels::cuda::Element;
using kernels::cuda::PackedMatrix;

// Uploads what a Part of ModelWeights is made of. Tensors are taken over, so
// that the host's copy goes once it is not needed.
class Mover {
 public:
  explicit Mover(WeightUploader& uploader) : uploader_(uploader) {}

  absl::StatusOr<const float*> Floats(const at::Tensor& tensor) {
    if (!tensor.defined()) return nullptr;
    const at::Tensor wide = tensor.to(at::kFloat).contiguous();
    return uploader_.Floats(
        {wide.const_data_ptr<float>(), static_cast<size_t>(wide.numel())});
  }

  absl::StatusOr<CudaNorm> Norm(NormWeights norm) {
    CudaNorm moved;
    OUTRIDER_ASSIGN_OR_RETURN(moved.weight, Floats(norm.weight));
    OUTRIDER_ASSIGN_OR_RETURN(moved.bias, Floats(norm.bias));
    return moved;
  }

  absl::StatusOr<PackedMatrix> Table(Matrix matrix) {
    return uploader_.Matrix(RowsOf(matrix));
  }

  absl::StatusOr<CudaLinear> Linear(LinearWeights linear,
                                    bool is_gate_and_up = false) {
    CudaLinear moved;
    const WeightUploader::Rows rows = RowsOf(linear.matrix);
    OUTRIDER_ASSIGN_OR_RETURN(moved.matrix, is_gate_and_up
                                                ? uploader_.GateAndUp(rows)
                                                : uploader_.Matrix(rows));
    OUTRIDER_ASSIGN_OR_RETURN(moved.bias, Floats(linear.bias));
    return moved;
  }

 private:
  static WeightUploader::Rows RowsOf(const Matrix& matrix) {
    return {.data = matrix.tensor.const_data_ptr(),
            .out = static_cast<int>(matrix.tensor.size(0)),
            .in = static_cast<int>(matrix.tensor.size(1))};
  }

  WeightUploader& uploader_;
};

absl::StatusOr<CudaLayer> MoveLayer(const ModelConfig& config,
                                    LayerWeights layer, Mover& mover) {
  CudaLayer moved;
  AttentionWeights& attention = layer.attention;
  FeedForwardWeights& feed_forward = layer.feed_forward;
  OUTRIDER_ASSIGN_OR_RETURN(moved.attention_norm,
                            mover.Norm(std::move(layer.attention_norm)));
  OUTRIDER_ASSIGN_OR_RETURN(moved.qkv, mover.Linear(std::move(attention.qkv)));
  OUTRIDER_ASSIGN_OR_RETURN(moved.query_norm,
                            mover.Norm(std::move(attention.query_norm)));
  OUTRIDER_ASSIGN_OR_RETURN(moved.key_norm,
                            mover.Norm(std::move(attention.key_norm)));
  OUTRIDER_ASSIGN_OR_RETURN(moved.output,
                            mover.Linear(std::move(attention.output)));
  OUTRIDER_ASSIGN_OR_RETURN(moved.feed_forward_norm,
                            mover.Norm(std::move(layer.feed_forward_norm)));
  OUTRIDER_ASSIGN_OR_RETURN(
      moved.up,
      mover.Linear(std::move(feed_forward.up),
                   config.feed_forward == FeedForwardKind::kSiluGated));
  OUTRIDER_ASSIGN_OR_RETURN(moved.down,
                            mover.Linear(std::move(feed_forward.down)));
  return moved;
}

absl::StatusOr<CudaWeights> Move(const ModelConfig& config,
                                 ModelWeights weights,
                                 WeightUploader& uploader) {
  Mover mover(uploader);
  CudaWeights moved;
  LinearWeights head = std::move(weights.head);
  if (config.has_tied_head) head.matrix = {};
  OUTRIDER_ASSIGN_OR_RETURN(moved.token_embedding,
                            mover.Table(std::move(weights.token_embedding)));
  OUTRIDER_ASSIGN_OR_RETURN(moved.position_embedding,
                            mover.Floats(weights.position_embedding.tensor));
  for (LayerWeights& layer : weights.layers) {
    OUTRIDER_ASSIGN_OR_RETURN(moved.layers.emplace_back(),
                              MoveLayer(config, std::move(layer), mover));
  }
  OUTRIDER_ASSIGN_OR_RETURN(moved.final_norm,
                            mover.Norm(std::move(weights.final_norm)));
  if (config.has_tied_head) {
    moved.head.matrix = moved.token_embedding;
  } else {
    OUTRIDER_ASSIGN_OR_RETURN(moved.head, mover.Linear(std::move(head)));
  }
  moved.memory = uploader.TakeMemory();
  return moved;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CausalLm>> MoveToGpu(std::shared_ptr<Gpu> gpu,
                                                    ModelInfo info,
                                                    const ModelConfig& config,
                                                    ModelWeights weights) {
  OUTRIDER_LOG(kInfo) << "device " << info.device << ": " << gpu->name();
  const bool is_half =
      weights.token_embedding.tensor.scalar_type() == at::kHalf;
  OUTRIDER_ASSIGN_OR_RETURN(
      WeightUploader uploader,
      WeightUploader::Make(gpu,
                           is_half ? Element::kFloat16 : Element::kBFloat16));
  OUTRIDER_ASSIGN_OR_RETURN(CudaWeights moved,
                            Move(config, std::move(weights), uploader));
  CudaLimits limits;
  // A graph saves nothing there, and to load the kernels would take minutes.
  if (gpu->numerics() == "cuda_emulated") limits.capture_time = {};
  return MakeCudaCausalLm(std::move(gpu), std::move(info), config,
                          std::move(moved), limits);
}

}  // namespace outrider
