// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/cuda_causal_lm.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/pinned_pool.h"
#include "core/cuda_model/step_inputs.h"
#include "core/model/check_extension.h"
#include "core/model/ragged_pass.h"

namespace outrider {
namespace {

class CudaCausalLm final : public CausalLm {
 public:
  CudaCausalLm(std::shared_ptr<Gpu> gpu, ModelInfo info,
               std::unique_ptr<CudaTransformer> transformer)
      : gpu_(std::move(gpu)),
        info_(std::move(info)),
        transformer_(std::move(transformer)),
        pool_(gpu_) {}

  const ModelInfo& info() const override { return info_; }
  int64_t AvailableKvBytes() const override {
    return static_cast<int64_t>(gpu_->AvailableBytes());
  }
  absl::Status AllocateKvBlocks(int num_blocks) override;
  std::vector<absl::StatusOr<LogitRows>> Extend(
      absl::Span<const Extension> batch) override {
    return ExtendAsOnePass(
        batch, info_.vocab_size,
        [this](const Extension& extension) { return Check(extension); },
        [this](absl::Span<const Extension> pass) { return Run(pass); });
  }

 private:
  absl::Status Check(const Extension& extension) const;
  absl::StatusOr<std::shared_ptr<const float>> Run(
      absl::Span<const Extension> pass);

  const std::shared_ptr<Gpu> gpu_;
  const ModelInfo info_;
  const std::unique_ptr<CudaTransformer> transformer_;
  PinnedPool pool_;
  int num_blocks_ = 0;
  std::shared_ptr<void> step_memory_;  // of a StepInputs
};

absl::Status CudaCausalLm::AllocateKvBlocks(int num_blocks) {
  OUTRIDER_RETURN_IF_ERROR(transformer_->AllocateKvBlocks(num_blocks));
  num_blocks_ = num_blocks;
  step_memory_ = pool_.Take(StepArrays::Bytes(transformer_->step_limits()));
  if (step_memory_ != nullptr) return absl::OkStatus();
  return absl::ResourceExhaustedError("no pinned memory for a pass");
}

absl::Status CudaCausalLm::Check(const Extension& extension) const {
  for (const KvBlockId block : extension.blocks) {
    OUTRIDER_CHECK(block >= 0 && block < num_blocks_)
        << "block " << block << " of " << num_blocks_;
  }
  return CheckExtension(extension, info_);
}

// In steps, each as full as can be. No bit depends on where one ends.
absl::StatusOr<std::shared_ptr<const float>> CudaCausalLm::Run(
    absl::Span<const Extension> pass) {
  const size_t vocab_size = static_cast<size_t>(info_.vocab_size);
  const auto num_rows = static_cast<size_t>(NumLogitRows(pass));
  std::shared_ptr<float> logits;
  if (num_rows > 0) {
    logits = std::static_pointer_cast<float>(
        pool_.Take(num_rows * vocab_size * sizeof(float)));
    if (logits == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no pinned memory for ", num_rows, " rows of logits"));
    }
  }
  float* next = logits.get();
  StepInputs step(transformer_->step_limits(), step_memory_.get());
  const auto run_step = [&]() -> absl::Status {
    const int num_wanted = step.shape().num_logit_rows;
    OUTRIDER_RETURN_IF_ERROR(transformer_->Run(step, next));
    if (num_wanted > 0) next += num_wanted * vocab_size;
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
  return logits;
}

}  // namespace

absl::StatusOr<std::unique_ptr<CausalLm>> MakeCudaCausalLm(
    std::shared_ptr<Gpu> gpu, ModelInfo info, const ModelConfig& config,
    CudaWeights weights, const CudaLimits& limits) {
  info.numerics = gpu->numerics();
  info.kv_block_bytes = CudaTransformer::KvBlockBytes(config);
  OUTRIDER_ASSIGN_OR_RETURN(
      auto transformer,
      CudaTransformer::Make(gpu, config, std::move(weights), limits));
  return std::make_unique<CudaCausalLm>(std::move(gpu), std::move(info),
                                        std::move(transformer));
}

}  // namespace outrider
