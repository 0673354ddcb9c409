// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/cuda_transformer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/pinned_pool.h"
#include "core/model/rotary_frequencies.h"

namespace outrider {
namespace {

constexpr size_t kElementBytes = 2;
constexpr size_t kAlignment = 256;
constexpr int kCopyAlignment = 16;  // of what CopyBlocks copies

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
  if (config.vocab_size > kernels::cuda::kMaxTopVocabulary) {
    return refuse("vocab_size", config.vocab_size, "at most 524288");
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
  OUTRIDER_RETURN_IF_ERROR(transformer->MakeStepsInFlight());
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
      heads_({.num_heads = config.num_heads,
              .num_kv_heads = config.num_kv_heads,
              .head_dim = config.head_dim}),
      graphs_(gpu_, limits.spare_bytes),
      counters_(std::make_unique<DeviceCounters>()) {
  const int context_blocks = NumKvBlocks(config.context_length);
  for (const DeviceMemory& memory : weights_.memory) {
    counters_->num_memory_bytes += static_cast<int64_t>(memory.bytes());
  }
  // Every session that may draw can have a whole context.
  const int table_entries = limits.loop_sessions * context_blocks;
  step_limits_ = {.rows = limits.rows,
                  .table_entries = std::max(table_entries, limits.rows),
                  .group = config.num_heads / config.num_kv_heads};
  const int num_splits = kernels::cuda::NumSplits(config.context_length);
  const size_t fit = limits.attention_floats /
                     kernels::cuda::AttentionScratchFloats(heads_, 1);
  const size_t all = static_cast<size_t>(step_limits_.tiles()) * num_splits;
  step_limits_.pairs =
      std::max(num_splits, static_cast<int>(std::min(fit, all)));
}

absl::Status CudaTransformer::MakeStepsInFlight() {
  const auto threads = std::make_shared<AnswerThreads>(limits_.answers);
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<RowScorer> scorer,
                            RowScorer::Make(gpu_, *counters_,
                                            {.max_rows = limits_.rows,
                                             .vocab_size = config_.vocab_size,
                                             .threads = threads}));
  StepLimits step = step_limits_;
  step.rows = std::min(limits_.rows, limits_.loop_sessions);
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<DrawLoop> loop,
                            DrawLoop::Make(gpu_, *counters_,
                                           {.max_rows = limits_.drawn_rows,
                                            .vocab_size = config_.vocab_size,
                                            .step = step,
                                            .threads = threads}));
  OUTRIDER_ASSIGN_OR_RETURN(
      rows_, RowsInFlight::Make(gpu_, *counters_,
                                {.logits = arena_.logits,
                                 .max_rows = limits_.rows,
                                 .vocab_size = config_.vocab_size}));
  while (true) {
    auto inputs = PinnedPool(gpu_).Take(StepArrays::Bytes(step_limits_));
    if (inputs == nullptr) {
      return absl::ResourceExhaustedError("no pinned memory for a step");
    }
    OUTRIDER_ASSIGN_OR_RETURN(DeviceEvent end, DeviceEvent::Make(gpu_));
    in_flight_.push_back({.inputs = std::move(inputs),
                          .scorer = std::move(scorer),
                          .loop = std::move(loop),
                          .end = std::move(end)});
    if (in_flight_.size() == kStepsInFlight) return absl::OkStatus();
    OUTRIDER_ASSIGN_OR_RETURN(scorer, in_flight_[0].scorer->MakeTwin());
    OUTRIDER_ASSIGN_OR_RETURN(loop, in_flight_[0].loop->MakeTwin());
  }
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
  const size_t attention_floats =
      kernels::cuda::AttentionScratchFloats(heads_, step_limits_.pairs);
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
    cutter.Cut(rows * static_cast<size_t>(config_.vocab_size) * sizeof(float),
               arena_.logits);
    cutter.Cut(attention_floats * sizeof(float), arena_.attention);
  };
  Cutter size(nullptr);
  cut(size);
  // A step reads rows that fill it up, of which attention writes nothing.
  OUTRIDER_ASSIGN_OR_RETURN(
      DeviceMemory memory,
      DeviceMemory::AllocateZeroed(gpu_, size.used(), "activations"));
  Cutter cutter(memory.data());
  cut(cutter);
  Keep(std::move(memory));
  return absl::OkStatus();
}

absl::Status CudaTransformer::UploadAngles() {
  if (config_.positions != PositionKind::kRotary) return absl::OkStatus();
  const std::vector<float> frequencies = RotaryFrequencies(config_);
  const size_t count = frequencies.size() * config_.context_length;
  const auto magnitude = static_cast<float>(config_.rope_scaling.magnitude);
  std::vector<float> angles(2 * count);
  for (size_t i = 0; i < count; ++i) {
    const float angle = static_cast<float>(i / frequencies.size()) *
                        frequencies[i % frequencies.size()];
    angles[i] = magnitude * std::cos(angle);
    angles[count + i] = magnitude * std::sin(angle);
  }
  const size_t bytes = angles.size() * sizeof(float);
  OUTRIDER_ASSIGN_OR_RETURN(DeviceMemory memory,
                            DeviceMemory::Allocate(gpu_, bytes, "angles"));
  gpu_->Upload(memory.data(), angles.data(), bytes);
  OUTRIDER_RETURN_IF_ERROR(Finish());  // before `angles` go
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
  counters_->num_memory_bytes += static_cast<int64_t>(memory.bytes());
  kv_memory_ = std::move(memory);
  step_limits_.spare_block = num_blocks;
  for (StepInFlight& step : in_flight_) step.loop->set_spare_block(num_blocks);
  return absl::OkStatus();
}

void CudaTransformer::FreeKvBlocks() {
  graphs_.Clear();
  counters_->num_graphs = 0;
  if (!kv_memory_.has_value()) return;
  counters_->num_memory_bytes -= static_cast<int64_t>(kv_memory_->bytes());
  kv_.clear();
  kv_memory_.reset();
}

void CudaTransformer::CopyKvBlocks(absl::Span<const KvBlockCopy> copies) {
  using Args = kernels::cuda::CopyBlocksArgs;
  const int num_arrays = 2 * config_.num_layers;
  for (size_t first = 0; first < copies.size(); first += Args::kMostPairs) {
    Args args = {
        .arrays = kv_memory_->data(),
        .num_arrays = num_arrays,
        .array_bytes = kv_memory_->bytes() / static_cast<size_t>(num_arrays),
        .block_bytes = static_cast<int>(KvBlockBytes(config_) / num_arrays)};
    for (const auto& [from, to] : copies.subspan(first, Args::kMostPairs)) {
      args.pairs[args.num_pairs++] = {.from = from, .to = to};
    }
    gpu_->Run(args);
  }
}

void CudaTransformer::Launch(StepInputs& step, absl::Span<WantedRow> rows,
                             StepInFlight& flight) {
  flight.launched = rows_->MakeRoom();
  if (!flight.launched.ok()) return;
  flight.loop->Begin(arena_.logits, rows);
  RunStep(step, rows, *flight.scorer);
  RunLoop(*flight.loop);
  counters_->num_graphs = graphs_.num_captured();
  counters_->num_late_graphs = graphs_.num_late();
  counters_->num_graph_replays = graphs_.num_replays();
  const absl::Status whole = flight.scorer->Download(arena_.logits, rows);
  flight.loop->Download();
  flight.launched = flight.end.Record();
  flight.launched.Update(whole);
  const auto last_asked = std::find_if(rows.rbegin(), rows.rend(), IsUndecided);
  rows_->Keep(flight, static_cast<size_t>(rows.rend() - last_asked));
}

absl::Status CudaTransformer::Bring(absl::Span<WantedRow> rows,
                                    StepInFlight& flight) {
  // The next step but one needs the place, however this ends.
  const absl::Cleanup forget = [&] { rows_->Forget(flight); };
  absl::Status status = flight.end.Await();
  status.Update(flight.launched);
  if (status.ok()) {
    flight.scorer->TakeAnswers(rows);
    flight.loop->Take(rows);
    if (std::any_of(rows.begin(), rows.end(), IsUndecided)) {
      status = rows_->Read(flight, [&](const float* logits) {
        return flight.scorer->FetchOthers(logits, rows);
      });
    }
  }
  return status;
}

void CudaTransformer::RunStep(StepInputs& step, absl::Span<WantedRow> rows,
                              RowScorer& scorer) {
  const std::optional<StepShape> bucket =
      GraphBucket(step.shape(), step_limits_, limits_);
  if (bucket.has_value()) step.PadTo(*bucket);
  gpu_->Upload(arena_.inputs.tokens, step.memory(), step.bytes());
  const GraphShape shape = {.step = step.shape()};
  scorer.Ask(arena_.logits, rows, shape.step.num_logit_rows);
  bucket.has_value() ? RunGraph(shape) : Launch(shape);
}

void CudaTransformer::RunGraph(const GraphShape& shape) {
  graphs_.Run(shape, [&] { Launch(shape); });
}

void CudaTransformer::Launch(const GraphShape& shape) {
  const StepShape& step = shape.step;
  if (shape.draws_next) {
    loop().Draw(step.num_rows);
    RunLayers(loop().inputs(), step);
    RunHead(loop().inputs().logit_rows, step.num_logit_rows, loop().logits());
    return;
  }
  RunLayers(arena_.inputs, step);
  if (step.num_logit_rows == 0) return;
  RunHead(arena_.inputs.logit_rows, step.num_logit_rows, arena_.logits);
  in_flight_[0].scorer->Answer(step.num_logit_rows);
}

void CudaTransformer::RunLoop(DrawLoop& loop) {
  if (loop.empty()) return;
  const std::optional<StepShape> bucket =
      GraphBucket(loop.shape(), loop.limits(), limits_);
  if (bucket.has_value()) loop.PadTo(*bucket);
  loop.Upload();
  const GraphShape shape = {.step = loop.shape(), .draws_next = true};
  for (int i = 0; i < loop.num_steps(); ++i) {
    bucket.has_value() ? RunGraph(shape) : Launch(shape);
  }
  loop.Draw(shape.step.num_rows);
}

absl::StatusOr<size_t> CudaTransformer::CaptureGraphs() {
  using Clock = std::chrono::steady_clock;
  const std::vector<GraphShape> shapes = AllGraphShapes(
      step_limits_, loop().limits(), limits_, config_.context_length);
  if (limits_.capture_time > std::chrono::seconds(0)) {
    OUTRIDER_RETURN_IF_ERROR(LoadKernels(shapes));
  }
  const Clock::time_point end = Clock::now() + limits_.capture_time;
  const size_t available = gpu_->AvailableBytes();
  const size_t least =
      std::max(limits_.spare_bytes,
               available - std::min(available, limits_.capture_bytes));
  for (const GraphShape& shape : shapes) {
    if (Clock::now() >= end || gpu_->AvailableBytes() < least) break;
    if (!graphs_.Capture(shape, [&] { Launch(shape); })) break;
  }
  counters_->num_graphs = graphs_.num_captured();
  OUTRIDER_RETURN_IF_ERROR(Finish());
  return shapes.size();
}

absl::Status CudaTransformer::LoadKernels(absl::Span<const GraphShape> shapes) {
  // No step copies KV blocks: sixteen bytes of the arena, onto themselves.
  gpu_->Run(kernels::cuda::CopyBlocksArgs{.arrays = arena_.x,
                                          .num_arrays = 1,
                                          .array_bytes = kCopyAlignment,
                                          .block_bytes = kCopyAlignment,
                                          .num_pairs = 1});
  std::set<GraphShape> loaded;
  for (const GraphShape& shape : shapes) {
    // Kernels differ by the number of rows alone.
    GraphShape kernels = shape;
    kernels.step.num_tiles = kernels.step.num_pairs = 0;
    if (loaded.insert(kernels).second) {
      OUTRIDER_RETURN_IF_ERROR(LoadKernelsOf(shape));
    }
  }
  return absl::OkStatus();
}

absl::Status CudaTransformer::LoadKernelsOf(const GraphShape& shape) {
  const StepInFlight& flight = in_flight_[0];
  if (shape.draws_next) {
    flight.loop->Begin(arena_.logits, /*rows=*/{});
    flight.loop->PadTo(shape.step);
    flight.loop->Upload();
  } else {
    StepInputs step(step_limits_, flight.inputs.get());
    step.PadTo(shape.step);
    gpu_->Upload(arena_.inputs.tokens, step.memory(), step.bytes());
    WantedRow none;
    flight.scorer->Ask(arena_.logits, {&none, 1}, shape.step.num_logit_rows);
  }
  Launch(shape);
  return Finish();
}

}  // namespace outrider
