// SPDX-License-Identifier: Apache-2.0
#include "core/node/node.h"

#include <utility>

namespace outrider {
namespace {

v1::NodeDescription DescriptionOf(NodeDescription description,
                                  const CausalLm& model, int num_blocks) {
  description.kv_cache_tokens = int64_t{num_blocks} * kKvBlockLength;
  description.kv_cache_bytes = num_blocks * model.info().kv_block_bytes;
  return ToProto(description);
}

}  // namespace

Node::Node(std::unique_ptr<CausalLm> model, BatchScheduler::Options options,
           const NodeDescription& description)
    : description_(
          DescriptionOf(description, *model, options.sessions.num_blocks)),
      engine_(std::move(model),
              {.scheduling = options, .on_lost = [this] { is_lost_ = true; }}),
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
