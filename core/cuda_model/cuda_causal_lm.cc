// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/cuda_causal_lm.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/pinned_pool.h"
#include "core/cuda_model/step_inputs.h"
#include "core/model/check_extension.h"
#include "core/model/ragged_pass.h"

namespace outrider {
namespace {

// What is wanted of a pass's rows, in their order.
std::vector<WantedRow> WantedRows(absl::Span<const Extension> pass) {
  std::vector<WantedRow> rows;
  for (const Extension& extension : pass) {
    for (size_t i = 0; i < static_cast<size_t>(extension.num_rows); ++i) {
      rows.push_back({.question = extension.questions.empty()
                                      ? nullptr
                                      : &extension.questions[i]});
    }
    const bool may_go_on = extension.num_rows > 0 && extension.max_drawn > 0 &&
                           !extension.questions.empty();
    if (may_go_on) rows.back().extension = &extension;
  }
  return rows;
}

class CudaCausalLm final : public CausalLm {
 public:
  CudaCausalLm(std::shared_ptr<Gpu> gpu, ModelInfo info,
               std::unique_ptr<CudaTransformer> transformer,
               std::shared_ptr<void> step_memory)
      : gpu_(std::move(gpu)),
        info_(std::move(info)),
        transformer_(std::move(transformer)),
        step_memory_(std::move(step_memory)) {}

  const ModelInfo& info() const override { return info_; }
  int64_t AvailableKvBytes() const override;
  absl::Status AllocateKvBlocks(int num_blocks) override;
  absl::Status Prepare() override;
  std::vector<absl::StatusOr<LogitRows>> Extend(
      absl::Span<const Extension> batch) override {
    return ExtendAsOnePass(
        batch, [this](const Extension& extension) { return Check(extension); },
        [this](absl::Span<const Extension> pass) { return Run(pass); });
  }
  const DeviceCounters* device_counters() const override {
    return &transformer_->counters();
  }

 private:
  absl::Status Check(const Extension& extension) const;
  absl::StatusOr<std::vector<LogitRows>> Run(absl::Span<const Extension> pass);

  const std::shared_ptr<Gpu> gpu_;
  const ModelInfo info_;
  const std::unique_ptr<CudaTransformer> transformer_;
  const std::shared_ptr<void> step_memory_;  // of a StepInputs, pinned
  int num_blocks_ = 0;
};

// Less what graphs take. One names where blocks lie, so none can be captured
// before them: where there are no blocks yet, those that Prepare will capture
// are tried over the one that nobody has.
int64_t CudaCausalLm::AvailableKvBytes() const {
  const auto available = [this] {
    return static_cast<int64_t>(gpu_->AvailableBytes());
  };
  if (num_blocks_ > 0) return available();
  absl::Status status = transformer_->AllocateKvBlocks(0);
  if (status.ok()) {
    status = transformer_->CaptureGraphs(step_memory_.get()).status();
  }
  const int64_t bytes = available() + info_.kv_block_bytes;
  transformer_->FreeKvBlocks();
  if (status.ok()) return bytes;
  OUTRIDER_LOG(kError) << "no memory is left for KV blocks: "
                       << status.message();
  return 0;
}

absl::Status CudaCausalLm::AllocateKvBlocks(int num_blocks) {
  OUTRIDER_RETURN_IF_ERROR(transformer_->AllocateKvBlocks(num_blocks));
  num_blocks_ = num_blocks;
  return absl::OkStatus();
}

absl::Status CudaCausalLm::Prepare() {
  const auto start = std::chrono::steady_clock::now();
  const size_t available = gpu_->AvailableBytes();
  OUTRIDER_ASSIGN_OR_RETURN(const size_t num_shapes,
                            transformer_->CaptureGraphs(step_memory_.get()));
  const size_t left = std::min(available, gpu_->AvailableBytes());
  const std::chrono::duration<double> time =
      std::chrono::steady_clock::now() - start;
  OUTRIDER_LOG(kInfo) << "graphs of " << transformer_->counters().num_graphs
                      << " of " << num_shapes
                      << " shapes of steps were captured in " << time.count()
                      << " s and take " << ((available - left) >> 20)
                      << " MiB of the device's memory";
  return absl::OkStatus();
}

absl::Status CudaCausalLm::Check(const Extension& extension) const {
  for (const KvBlockId block : extension.blocks) {
    OUTRIDER_CHECK(block >= 0 && block < num_blocks_)
        << "block " << block << " of " << num_blocks_;
  }
  return CheckExtension(extension, info_);
}

// In steps, each as full as can be. No bit depends on where one ends.
absl::StatusOr<std::vector<LogitRows>> CudaCausalLm::Run(
    absl::Span<const Extension> pass) {
  std::vector<WantedRow> rows = WantedRows(pass);
  absl::Span<WantedRow> left = absl::MakeSpan(rows);
  StepInputs step(transformer_->step_limits(), step_memory_.get());
  const auto run_step = [&]() -> absl::Status {
    const auto num_wanted = static_cast<size_t>(step.shape().num_logit_rows);
    OUTRIDER_RETURN_IF_ERROR(transformer_->Run(step, left.first(num_wanted)));
    left.remove_prefix(num_wanted);
    step.Clear();
    return absl::OkStatus();
  };
  for (const Extension& extension : pass) {
    if (!extension.copied_block.has_value()) continue;
    transformer_->CopyKvBlock(*extension.copied_block, CopyTarget(extension));
  }
  for (const Extension& extension : pass) {
    for (size_t first = 0; first < extension.tokens.size();) {
      const int count = step.Add(extension, static_cast<int>(first));
      if (count == 0) OUTRIDER_RETURN_IF_ERROR(run_step());
      first += static_cast<size_t>(count);
    }
  }
  OUTRIDER_RETURN_IF_ERROR(run_step());

  std::vector<LogitRows> results;
  auto next = rows.begin();
  for (const Extension& extension : pass) {
    std::vector<LogitRows::AskedRow> own;
    std::vector<TokenId> drawn;
    for (int i = 0; i < extension.num_rows; ++i, ++next) {
      own.push_back(std::move(next->result));
      std::move(next->drawn_rows.begin(), next->drawn_rows.end(),
                std::back_inserter(own));
      drawn = std::move(next->drawn);
    }
    results.emplace_back(std::move(own), info_.vocab_size, std::move(drawn));
  }
  return results;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CausalLm>> MakeCudaCausalLm(
    std::shared_ptr<Gpu> gpu, ModelInfo info, const ModelConfig& config,
    CudaWeights weights, const CudaLimits& limits) {
  info.device_name = gpu->name();
  info.numerics = gpu->numerics();
  info.kv_block_bytes = CudaTransformer::KvBlockBytes(config);
  OUTRIDER_ASSIGN_OR_RETURN(
      auto transformer,
      CudaTransformer::Make(gpu, config, std::move(weights), limits));
  auto step_memory =
      PinnedPool(gpu).Take(StepArrays::Bytes(transformer->step_limits()));
  if (step_memory == nullptr) {
    return absl::ResourceExhaustedError("no pinned memory for a pass");
  }
  return std::make_unique<CudaCausalLm>(std::move(gpu), std::move(info),
                                        std::move(transformer),
                                        std::move(step_memory));
}

}  // namespace outrider
