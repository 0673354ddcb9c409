// SPDX-License-Identifier: Apache-2.0
#include "core/node/node.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/base/available_cores.h"
#include "core/base/node_drains.h"

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

NodeActivity ActivityOf(const EngineMetrics& engine) {
  const auto take = [](const prometheus::Histogram& histogram) {
    return histogram.Collect().histogram;
  };
  const auto rows = take(engine.rows_per_pass);
  const auto sessions = take(engine.sessions_per_pass);
  const auto decode = take(engine.decode_queued);
  const auto prefill = take(engine.prefill_queued);
  return {.num_passes = static_cast<int64_t>(rows.sample_count),
          .num_rows = static_cast<int64_t>(rows.sample_sum),
          .num_pass_sessions = static_cast<int64_t>(sessions.sample_sum),
          .num_prefill_chunks = engine.num_chunks,
          .num_preemptions = engine.num_preempted,
          .num_decode_calls = static_cast<int64_t>(decode.sample_count),
          .decode_queue_seconds = decode.sample_sum,
          .num_prefill_calls = static_cast<int64_t>(prefill.sample_count),
          .prefill_queue_seconds = prefill.sample_sum,
          .num_sessions = engine.num_sessions,
          .num_kv_blocks = engine.num_blocks,
          .num_kv_blocks_used = engine.num_blocks_used};
}

std::optional<GpuActivity> GpuActivityOf(const CausalLm& model) {
  const DeviceCounters* device = model.device_counters();
  if (device == nullptr) return std::nullopt;
  return GpuActivity{.name = model.info().device_name,
                     .memory_bytes = device->num_memory_bytes,
                     .num_graphs = device->num_graphs,
                     .num_late_graphs = device->num_late_graphs,
                     .num_graph_replays = device->num_graph_replays,
                     .num_answered_rows = device->num_answered_rows,
                     .num_copied_rows = device->num_copied_rows,
                     .num_undecided_rows = device->num_undecided_rows};
}

// One for a pass, which has threads of its own, and the others for the rows of
// the pass before.
int NumEngineThreads() { return std::clamp(AvailableCores() / 2, 2, 8); }

}  // namespace

Node::Node(std::unique_ptr<CausalLm> model, BatchScheduler::Options options,
           const NodeDescription& description)
    : description_(DescriptionOf(description, *model, options.sessions)),
      identity_(ToProto(description.identity())),
      engine_(std::move(model), {.scheduling = options,
                                 .num_threads = NumEngineThreads(),
                                 .on_lost = [this] { is_lost_ = true; }}),
      cache_service_(engine_, counters_, suspects_) {}

absl::Status Node::Describe(v1::NodeDescription& description) const {
  if (is_lost_) {
    return absl::UnavailableError("this node has lost its device");
  }
  if (counters_.draining) return NodeDrainsError();
  description = description_;
  NodeActivity activity = ActivityOf(engine_metrics());
  activity.gpu = GpuActivityOf(model());
  *description.mutable_activity() = ToProto(activity);
  return absl::OkStatus();
}

}  // namespace outrider
