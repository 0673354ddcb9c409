// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/cuda_transformer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/model/rotary_frequencies.h"

namespace outrider {
namespace {

using kernels::cuda::AttentionArgs;
using kernels::cuda::Epilogue;
using kernels::cuda::Heads;

constexpr size_t kElementBytes = 2;
constexpr size_t kAlignment = 256;

Heads HeadsOf(const ModelConfig& config) {
  return {.num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim};
}

int GroupOf(const ModelConfig& config) {
  return config.num_heads / config.num_kv_heads;
}

// Hands out pieces of one piece of memory; without memory, how much they are.
class Cutter {
 public:
  explicit Cutter(void* memory) : memory_(static_cast<char*>(memory)) {}

  template <typename T>
  void Cut(size_t bytes, T*& piece) {
    if (memory_ != nullptr) piece = reinterpret_cast<T*>(memory_ + used_);
    used_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  void Cut(size_t bytes, void*& piece) {
    char* begin = nullptr;
    Cut(bytes, begin);
    if (begin != nullptr) piece = begin;
  }
  size_t used() const { return used_; }

 private:
  char* const memory_;
  size_t used_ = 0;
};

}  // namespace

absl::Status CudaTransformer::Check(const ModelConfig& config) {
  const auto refuse = [](absl::string_view what, int value,
                         absl::string_view rule) {
    return absl::UnimplementedError(
        absl::StrCat("device cuda: ", what, " ", value, " is not ", rule));
  };
  if (config.head_dim % 8 != 0 || config.head_dim > 128) {
    return refuse("head_dim", config.head_dim, "a multiple of 8 up to 128");
  }
  if (config.hidden_size % 8 != 0) {
    return refuse("hidden_size", config.hidden_size, "a multiple of 8");
  }
  if (config.intermediate_size % 8 != 0) {
    return refuse("intermediate_size", config.intermediate_size,
                  "a multiple of 8");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<CudaTransformer>> CudaTransformer::Make(
    std::shared_ptr<Gpu> gpu, const ModelConfig& config, CudaWeights weights,
    const CudaLimits& limits) {
  OUTRIDER_RETURN_IF_ERROR(Check(config));
  std::unique_ptr<CudaTransformer> transformer(
      new CudaTransformer(std::move(gpu), config, std::move(weights), limits));
  OUTRIDER_RETURN_IF_ERROR(transformer->AllocateArena());
  OUTRIDER_RETURN_IF_ERROR(transformer->UploadAngles());
  OUTRIDER_ASSIGN_OR_RETURN(
      transformer->scorer_,
      RowScorer::Make(
          transformer->gpu_, *transformer->counters_,
          {.max_rows = limits.logit_rows, .vocab_size = config.vocab_size}));
  return transformer;
}

CudaTransformer::CudaTransformer(std::shared_ptr<Gpu> gpu,
                                 const ModelConfig& config, CudaWeights weights,
                                 const CudaLimits& limits)
    : gpu_(std::move(gpu)),
      config_(config),
      weights_(std::move(weights)),
      limits_(limits),
      element_(weights_.token_embedding.element),
      graphs_(gpu_),
      counters_(std::make_unique<DeviceCounters>()) {
  const int context_blocks = NumKvBlocks(config.context_length);
  for (const DeviceMemory& memory : weights_.memory) {
    counters_->num_memory_bytes += static_cast<int64_t>(memory.bytes());
  }
  // Sixteen sessions with a whole context each, or many more with less.
  step_limits_ = {.rows = limits.rows,
                  .table_entries = std::max(16 * context_blocks, limits.rows),
                  .group = GroupOf(config)};
}

void CudaTransformer::Keep(DeviceMemory memory) {
  counters_->num_memory_bytes += static_cast<int64_t>(memory.bytes());
  memory_.push_back(std::move(memory));
}

absl::Status CudaTransformer::AllocateArena() {
  const auto rows = static_cast<size_t>(limits_.rows);
  const auto hidden = static_cast<size_t>(config_.hidden_size);
  const auto query_size = static_cast<size_t>(config_.query_size());
  const auto qkv_size = static_cast<size_t>(weights_.layers[0].qkv.matrix.out);
  const auto parts_of = [this](int num_tiles) {
    return kernels::cuda::AttentionScratchFloats(
        HeadsOf(config_), num_tiles, LongestOfBucket(config_.context_length));
  };
  attention_floats_ = std::max(
      parts_of(1),
      std::min(limits_.attention_floats, parts_of(step_limits_.tiles())));

  const auto cut = [&](Cutter& cutter) {
    void* inputs = nullptr;
    cutter.Cut(StepArrays::Bytes(step_limits_), inputs);
    if (inputs != nullptr) arena_.inputs = StepArrays(step_limits_, inputs);
    cutter.Cut(rows * hidden * sizeof(float), arena_.x);
    cutter.Cut(rows * hidden * kElementBytes, arena_.normed);
    cutter.Cut(rows * qkv_size * sizeof(float), arena_.qkv);
    cutter.Cut(rows * query_size * kElementBytes, arena_.queries);
    cutter.Cut(rows * query_size * kElementBytes, arena_.attended);
    cutter.Cut(
        rows * static_cast<size_t>(config_.intermediate_size) * kElementBytes,
        arena_.inner);
    cutter.Cut(static_cast<size_t>(limits_.logit_rows) *
                   static_cast<size_t>(config_.vocab_size) * sizeof(float),
               arena_.logits);
    cutter.Cut(attention_floats_ * sizeof(float), arena_.attention);
  };
  Cutter size(nullptr);
  cut(size);
  OUTRIDER_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::Allocate(gpu_, size.used(), "activations"));
  Cutter cutter(memory.data());
  cut(cutter);
  Keep(std::move(memory));
  return absl::OkStatus();
}

absl::Status CudaTransformer::UploadAngles() {
  if (config_.positions != PositionKind::kRotary) return absl::OkStatus();
  const std::vector<float> frequencies = RotaryFrequencies(config_);
  const size_t count = frequencies.size() * config_.context_length;
  std::vector<float> angles(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const float angle = static_cast<float>(i / frequencies.size()) *
                        frequencies[i % frequencies.size()];
    angles[i] = std::cos(angle);
    angles[count + i] = std::sin(angle);
  }
  const size_t bytes = angles.size() * sizeof(float);
  OUTRIDER_ASSIGN_OR_RETURN(DeviceMemory memory,
                            DeviceMemory::Allocate(gpu_, bytes, "angles"));
  gpu_->Upload(memory.data(), angles.data(), bytes);
  arena_.cos = memory.as<const float>();
  arena_.sin = arena_.cos + count;
  Keep(std::move(memory));
  return absl::OkStatus();
}

int64_t CudaTransformer::KvBlockBytes(const ModelConfig& config) {
  return int64_t{2} * config.num_layers * kKvBlockLength * config.kv_size() *
         static_cast<int64_t>(kElementBytes);
}

absl::Status CudaTransformer::AllocateKvBlocks(int num_blocks) {
  OUTRIDER_CHECK(kv_.empty()) << "allocated twice";
  // One more, which nobody reads.
  const size_t half = (static_cast<size_t>(num_blocks) + 1) * kKvBlockLength *
                      static_cast<size_t>(config_.kv_size()) * kElementBytes;
  OUTRIDER_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::Allocate(gpu_, 2 * half * config_.num_layers, "KV blocks"));
  for (int i = 0; i < config_.num_layers; ++i) {
    char* const keys = memory.as<char>() + 2 * half * i;
    kv_.push_back({.keys = keys, .values = keys + half});
  }
  Keep(std::move(memory));
  step_limits_.spare_block = num_blocks;
  // It is read where a graph is rehearsed.
  for (int i = 0; i < config_.num_layers; ++i) {
    for (void* const data : {kv_[i].keys, kv_[i].values}) {
      const size_t bytes = half / (static_cast<size_t>(num_blocks) + 1);
      gpu_->Zero(
          static_cast<char*>(data) + static_cast<size_t>(num_blocks) * bytes,
          bytes);
    }
  }
  return absl::OkStatus();
}

void CudaTransformer::CopyKvBlock(KvBlockId from, KvBlockId to) {
  const auto bytes = static_cast<size_t>(KvBlockBytes(config_)) /
                     (2 * static_cast<size_t>(config_.num_layers));
  for (const kernels::cuda::KvLayer& layer : kv_) {
    for (void* const half : {layer.keys, layer.values}) {
      char* const data = static_cast<char*>(half);
      gpu_->Copy(data + static_cast<size_t>(to) * bytes,
                 data + static_cast<size_t>(from) * bytes, bytes);
    }
  }
}

absl::Status CudaTransformer::Run(StepInputs& step,
                                  absl::Span<WantedRow> rows) {
  const auto num_wanted = static_cast<int>(rows.size());
  const StepShape bucket = BucketOf(step.shape());
  const bool is_graph =
      bucket.num_rows <= std::min(limits_.graph_rows, limits_.rows) &&
      bucket.num_tiles <= step_limits_.tiles() &&
      bucket.num_logit_rows <= std::min(limits_.logit_rows, limits_.rows);
  if (is_graph) step.PadTo(bucket);
  gpu_->Upload(arena_.inputs.tokens, step.memory(), step.bytes());
  if (is_graph) {
    graphs_.Run(bucket, [&] {
      RunLayers(bucket);
      if (num_wanted > 0) RunHead(0, bucket.num_logit_rows);
    });
    counters_->num_graph_replays = graphs_.num_replays() - num_rehearsed_;
    return scorer_->Bring(arena_.logits, rows);
  }
  RunLayers(step.shape());
  if (num_wanted == 0) return scorer_->Bring(arena_.logits, rows);
  for (int first = 0; first < num_wanted; first += limits_.logit_rows) {
    const int count = std::min(limits_.logit_rows, num_wanted - first);
    RunHead(first, count);
    OUTRIDER_RETURN_IF_ERROR(scorer_->Bring(
        arena_.logits,
        rows.subspan(static_cast<size_t>(first), static_cast<size_t>(count))));
  }
  return absl::OkStatus();
}

void CudaTransformer::ResetCounters() {
  num_rehearsed_ = graphs_.num_replays();
  for (auto* const counter :
       {&counters_->num_answered_rows, &counters_->num_copied_rows,
        &counters_->num_undecided_rows, &counters_->num_graph_replays}) {
    *counter = 0;
  }
}

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

void CudaTransformer::RunAttention(const StepShape& shape, int layer) {
  const Heads heads = HeadsOf(config_);
  const size_t tile_floats =
      kernels::cuda::AttentionScratchFloats(heads, 1, shape.longest);
  const int fit = static_cast<int>(
      std::min<size_t>(attention_floats_ / tile_floats, shape.num_tiles));
  for (int first = 0; first < shape.num_tiles; first += fit) {
    gpu_->Run(AttentionArgs{
        .element = element_,
        .heads = heads,
        .queries = arena_.queries,
        .kv = kv_[layer],
        .tables = arena_.inputs.tables,
        .tiles = arena_.inputs.tiles + first,
        .num_tiles = std::min(fit, shape.num_tiles - first),
        .longest = shape.longest,
        .window = config_.sliding_windows[layer],
        .scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim)),
        .scratch = arena_.attention,
        .out = arena_.attended});
  }
}

void CudaTransformer::RunLayers(const StepShape& shape) {
  const int num_rows = shape.num_rows;
  const Epilogue activation =
      config_.feed_forward == FeedForwardKind::kSiluGated ? Epilogue::kSiluMul
                                                          : Epilogue::kGelu;
  gpu_->Run(kernels::cuda::EmbedArgs{.table = weights_.token_embedding,
                                     .tokens = arena_.inputs.tokens,
                                     .positions = weights_.position_embedding,
                                     .row_positions = arena_.inputs.positions,
                                     .num_rows = num_rows,
                                     .x = arena_.x});
  for (int i = 0; i < config_.num_layers; ++i) {
    const CudaLayer& layer = weights_.layers[i];
    Normalize(layer.attention_norm, nullptr, num_rows);
    Multiply(layer.qkv, arena_.normed, num_rows, Epilogue::kStore, arena_.qkv);
    gpu_->Run(kernels::cuda::RotateStoreArgs{
        .element = element_,
        .heads = HeadsOf(config_),
        .qkv = arena_.qkv,
        .num_rows = num_rows,
        .positions = arena_.inputs.positions,
        .blocks = arena_.inputs.blocks,
        .query_norm = layer.query_norm.weight,
        .key_norm = layer.key_norm.weight,
        .epsilon = static_cast<float>(config_.norm_epsilon),
        .cos = arena_.cos,
        .sin = arena_.sin,
        .queries = arena_.queries,
        .kv = kv_[i]});
    RunAttention(shape, i);
    Multiply(layer.output, arena_.attended, num_rows, Epilogue::kAdd, arena_.x);
    Normalize(layer.feed_forward_norm, nullptr, num_rows);
    Multiply(layer.up, arena_.normed, num_rows, activation, arena_.inner);
    Multiply(layer.down, arena_.inner, num_rows, Epilogue::kAdd, arena_.x);
  }
}

void CudaTransformer::RunHead(int first, int count) {
  Normalize(weights_.final_norm, arena_.inputs.logit_rows + first, count);
  Multiply(weights_.head, arena_.normed, count, Epilogue::kStore,
           arena_.logits);
}

}  // namespace outrider
