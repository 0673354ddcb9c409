// SPDX-License-Identifier: Apache-2.0
#include "core/node/node.h"

#include <algorithm>
#include <utility>

#include "core/base/available_cores.h"

namespace outrider {
namespace {

v1::NodeDescription DescriptionOf(NodeDescription description,
                                  const CausalLm& model,
                                  const NodeSessions::Options& options) {
  const int num_blocks = options.num_blocks;
  description.kv_cache_tokens = int64_t{num_blocks} * kKvBlockLength;
  description.kv_cache_bytes = num_blocks * model.info().kv_block_bytes;
  for (const auto& [name, sharing] : PrefixSharingNames()) {
    if (sharing == options.sharing) description.prefix_cache = name;
  }
  return ToProto(description);
}

// One for a pass, which has threads of its own, and the others for the rows of
// the pass before.
int NumEngineThreads() { return std::clamp(AvailableCores() / 2, 2, 8); }

}  // namespace

Node::Node(std::unique_ptr<CausalLm> model, BatchScheduler::Options options,
           const NodeDescription& description)
    : description_(DescriptionOf(description, *model, options.sessions)),
      engine_(std::move(model), {.scheduling = options,
                                 .num_threads = NumEngineThreads(),
                                 .on_lost = [this] { is_lost_ = true; }}),
      cache_service_(engine_, counters_) {}

absl::Status Node::Describe(v1::NodeDescription& description) const {
  if (is_lost_) {
    return absl::UnavailableError("this node has lost its device");
  }
  if (counters_.draining) {
    return absl::UnavailableError("this node is shutting down");
  }
  description = description_;
  return absl::OkStatus();
}

}  // namespace outrider
