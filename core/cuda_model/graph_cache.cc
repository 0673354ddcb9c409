// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_cache.h"

#include <algorithm>
#include <bit>

#include "core/base/log.h"
#include "core/kernels/cuda/attention.h"

namespace outrider {
namespace {

int PowerOfTwo(int count) {
  if (count == 0) return 0;
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(count)));
}

}  // namespace

void GraphCache::Run(const GraphShape& shape,
                     absl::FunctionRef<void()> launch) {
  const auto [place, is_new] = graphs_.try_emplace(shape);
  Kept& kept = place->second;
  kept.last_use = ++num_uses_;
  if (is_new && graphs_.size() > kMaxGraphs) DropOldest();
  if (is_new || kept.is_refused) return launch();
  if (kept.graph == nullptr) {
    gpu_->BeginCapture();
    launch();
    kept.graph = gpu_->EndCapture();
    if (kept.graph == nullptr) {
      kept.is_refused = true;
      OUTRIDER_LOG(kWarning)
          << "the GPU takes no graph of a step of " << shape.step.num_rows
          << " rows: each is launched kernel by kernel";
      return launch();
    }
    ++num_captured_;
  }
  gpu_->Run(kept.graph);
  ++num_replays_;
}

void GraphCache::Clear() {
  for (const auto& [shape, kept] : graphs_) Destroy(kept);
  graphs_.clear();
}

void GraphCache::Destroy(const Kept& kept) {
  if (kept.graph == nullptr) return;
  gpu_->Destroy(kept.graph);
  --num_captured_;
}

void GraphCache::DropOldest() {
  const auto oldest = std::min_element(
      graphs_.begin(), graphs_.end(), [](const auto& a, const auto& b) {
        return a.second.last_use < b.second.last_use;
      });
  Destroy(oldest->second);
  graphs_.erase(oldest);
}

int LongestOfBucket(int longest) {
  return PowerOfTwo(kernels::cuda::NumSplits(longest)) *
         kernels::cuda::kSplitKeys;
}

StepShape BucketOf(const StepShape& shape) {
  return {.num_rows = PowerOfTwo(shape.num_rows),
          .num_tiles = PowerOfTwo(shape.num_tiles),
          .longest = LongestOfBucket(shape.longest),
          .num_logit_rows = PowerOfTwo(shape.num_logit_rows)};
}

}  // namespace outrider
