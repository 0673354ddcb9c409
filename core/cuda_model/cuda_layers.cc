// SPDX-License-Identifier: Apache-2.0
// Of CudaTransformer: the kernels of a forward pass, in their order.
#include <algorithm>
#include <cmath>

#include "core/cuda_model/cuda_transformer.h"

namespace outrider {

using kernels::cuda::AttentionArgs;
using kernels::cuda::Epilogue;

void CudaTransformer::Normalize(const CudaNorm& norm, const int* rows,
                                int num_rows) {
  const kernels::cuda::NormArgs args = {
      .element = element_,
      .x = arena_.x,
      .rows = rows,
      .weight = norm.weight,
      .bias = norm.bias,
      .num_rows = num_rows,
      .size = config_.hidden_size,
      .epsilon = static_cast<float>(config_.norm_epsilon),
      .y = arena_.normed};
  config_.norm == NormKind::kRms ? gpu_->RunRmsNorm(args)
                                 : gpu_->RunLayerNorm(args);
}

void CudaTransformer::Multiply(const CudaLinear& linear, const void* x,
                               int num_rows, Epilogue epilogue, void* y) {
  gpu_->Run(kernels::cuda::LinearArgs{.weight = linear.matrix,
                                      .x = x,
                                      .bias = linear.bias,
                                      .num_rows = num_rows,
                                      .epilogue = epilogue,
                                      .y = y});
}

void CudaTransformer::RunAttention(const StepArrays& inputs,
                                   const StepShape& shape, int layer) {
  const int at_once = step_limits_.pairs;
  for (int first = 0; first < shape.num_pairs; first += at_once) {
    gpu_->Run(AttentionArgs{
        .element = element_,
        .heads = heads_,
        .queries = arena_.queries,
        .kv = kv_[layer],
        .tables = inputs.tables,
        .tiles = inputs.tiles,
        .num_tiles = shape.num_tiles,
        .first_pair = first,
        .num_pairs = std::min(at_once, shape.num_pairs - first),
        .window = config_.sliding_windows[layer],
        .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
        .scratch = arena_.attention,
        .out = arena_.attended});
  }
}

void CudaTransformer::RunLayers(const StepArrays& inputs,
                                const StepShape& shape) {
  const int num_rows = shape.num_rows;
  const Epilogue activation =
      config_.feed_forward == FeedForwardKind::kSiluGated ? Epilogue::kSiluMul
                                                          : Epilogue::kGelu;
  gpu_->Run(kernels::cuda::EmbedArgs{.table = weights_.token_embedding,
                                     .tokens = inputs.tokens,
                                     .positions = weights_.position_embedding,
                                     .row_positions = inputs.positions,
                                     .num_rows = num_rows,
                                     .x = arena_.x});
  for (int i = 0; i < config_.num_layers; ++i) {
    const CudaLayer& layer = weights_.layers[i];
    Normalize(layer.attention_norm, nullptr, num_rows);
    Multiply(layer.qkv, arena_.normed, num_rows, Epilogue::kStore, arena_.qkv);
    gpu_->Run(kernels::cuda::RotateStoreArgs{
        .element = element_,
        .heads = heads_,
        .qkv = arena_.qkv,
        .num_rows = num_rows,
        .positions = inputs.positions,
        .blocks = inputs.blocks,
        .query_norm = layer.query_norm.weight,
        .key_norm = layer.key_norm.weight,
        .epsilon = static_cast<float>(config_.norm_epsilon),
        .cos = arena_.cos,
        .sin = arena_.sin,
        .queries = arena_.queries,
        .kv = kv_[i]});
    RunAttention(inputs, shape, i);
    Multiply(layer.output, arena_.attended, num_rows, Epilogue::kAdd, arena_.x);
    Normalize(layer.feed_forward_norm, nullptr, num_rows);
    Multiply(layer.up, arena_.normed, num_rows, activation, arena_.inner);
    Multiply(layer.down, arena_.inner, num_rows, Epilogue::kAdd, arena_.x);
  }
}

void CudaTransformer::RunHead(const int* logit_rows, int count, float* logits) {
  Normalize(weights_.final_norm, logit_rows, count);
  Multiply(weights_.head, arena_.normed, count, Epilogue::kStore, logits);
}

}  // namespace outrider
