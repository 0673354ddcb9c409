// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/cuda_causal_lm.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/check.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/cuda_model/cuda_pass.h"
#include "core/cuda_model/step_in_flight.h"
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
        transformer_(std::move(transformer)) {}

  const ModelInfo& info() const override { return info_; }
  int64_t AvailableKvBytes() const override;
  absl::Status AllocateKvBlocks(int num_blocks) override;
  absl::Status Prepare() override;
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override;
  int num_in_flight() const override { return kStepsInFlight; }
  bool answers_questions() const override { return true; }
  const DeviceCounters* device_counters() const override {
    return &transformer_->counters();
  }

 private:
  absl::Status Check(const Extension& extension) const;

  const std::shared_ptr<Gpu> gpu_;
  const ModelInfo info_;
  const std::unique_ptr<CudaTransformer> transformer_;
  int num_blocks_ = 0;
  int num_launched_ = 0;  // passes, those modulo kStepsInFlight
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
    status = transformer_->CaptureGraphs().status();
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
                            transformer_->CaptureGraphs());
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
  const std::optional<KvBlockId> copied = extension.copied_block;
  OUTRIDER_CHECK(!copied.has_value() || (*copied >= 0 && *copied < num_blocks_))
      << "block " << *copied << " of " << num_blocks_;
  return CheckExtension(extension, info_);
}

std::unique_ptr<PendingPass> CudaCausalLm::Launch(
    absl::Span<const Extension> batch) {
  StepInFlight& flight = transformer_->step_in_flight(num_launched_);
  num_launched_ = (num_launched_ + 1) % kStepsInFlight;
  CheckedPass pass(
      batch, [this](const Extension& extension) { return Check(extension); });
  return std::make_unique<CudaPass>(std::move(pass), *transformer_, flight);
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
  return std::make_unique<CudaCausalLm>(std::move(gpu), std::move(info),
                                        std::move(transformer));
}

}  // namespace outrider
