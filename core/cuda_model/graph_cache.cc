// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/graph_cache.h"

#include "core/base/log.h"

namespace outrider {

bool GraphCache::Capture(const GraphShape& shape,
                         absl::FunctionRef<void()> launch) {
  return Capture(shape, launch, graphs_[shape]);
}

void GraphCache::Run(const GraphShape& shape,
                     absl::FunctionRef<void()> launch) {
  const auto [place, is_new] = graphs_.try_emplace(shape);
  Kept& kept = place->second;
  if (is_new || kept.is_refused) return launch();
  if (kept.graph == nullptr) {
    // It is so for good: to ask again costs each step more than a graph spares.
    if (gpu_->AvailableBytes() < spare_bytes_) {
      Refuse(shape, kept);
    } else {
      Capture(shape, launch, kept);
    }
    if (kept.is_refused) return launch();
    ++num_late_;
  }
  gpu_->Run(kept.graph);
  ++num_replays_;
}

bool GraphCache::Capture(const GraphShape& shape,
                         absl::FunctionRef<void()> launch, Kept& kept) {
  if (gpu_->BeginCapture()) {
    launch();
    kept.graph = gpu_->EndCapture();
  }
  if (kept.graph == nullptr) {
    Refuse(shape, kept);
    return false;
  }
  ++num_captured_;
  return true;
}

void GraphCache::Refuse(const GraphShape& shape, Kept& kept) {
  kept.is_refused = true;
  OUTRIDER_LOG(kWarning) << "the GPU takes no graph of a step of "
                         << shape.step.num_rows
                         << " rows, or has too little memory for one: each is "
                            "launched kernel by kernel";
}

void GraphCache::Clear() {
  for (const auto& [shape, kept] : graphs_) {
    if (kept.graph != nullptr) gpu_->Destroy(kept.graph);
  }
  graphs_.clear();
  num_captured_ = 0;
}

}  // namespace outrider
