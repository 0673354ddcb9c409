// SPDX-License-Identifier: Apache-2.0
#include "core/wire/node_activity.h"

#include "core/wire/duration_convert.h"

namespace outrider {
namespace {

int64_t Count(uint64_t value) { return static_cast<int64_t>(value); }

v1::GpuActivity GpuToProto(const GpuActivity& gpu) {
  v1::GpuActivity proto;
  proto.set_name(gpu.name);
  proto.set_memory_bytes(gpu.memory_bytes);
  proto.set_num_graphs(gpu.num_graphs);
  proto.set_num_late_graphs(gpu.num_late_graphs);
  proto.set_num_graph_replays(gpu.num_graph_replays);
  proto.set_num_answered_rows(gpu.num_answered_rows);
  proto.set_num_copied_rows(gpu.num_copied_rows);
  proto.set_num_undecided_rows(gpu.num_undecided_rows);
  return proto;
}

GpuActivity GpuFromProto(const v1::GpuActivity& proto) {
  return {.name = proto.name(),
          .memory_bytes = Count(proto.memory_bytes()),
          .num_graphs = Count(proto.num_graphs()),
          .num_late_graphs = Count(proto.num_late_graphs()),
          .num_graph_replays = Count(proto.num_graph_replays()),
          .num_answered_rows = Count(proto.num_answered_rows()),
          .num_copied_rows = Count(proto.num_copied_rows()),
          .num_undecided_rows = Count(proto.num_undecided_rows())};
}

}  // namespace

v1::NodeActivity ToProto(const NodeActivity& activity) {
  v1::NodeActivity proto;
  proto.set_num_passes(activity.num_passes);
  proto.set_num_rows(activity.num_rows);
  proto.set_num_pass_sessions(activity.num_pass_sessions);
  proto.set_num_prefill_chunks(activity.num_prefill_chunks);
  proto.set_num_preemptions(activity.num_preemptions);
  proto.set_num_decode_calls(activity.num_decode_calls);
  SetDuration(activity.decode_queue_seconds, proto.mutable_decode_queue_time());
  proto.set_num_prefill_calls(activity.num_prefill_calls);
  SetDuration(activity.prefill_queue_seconds,
              proto.mutable_prefill_queue_time());
  proto.set_num_sessions(activity.num_sessions);
  proto.set_num_kv_blocks(activity.num_kv_blocks);
  proto.set_num_kv_blocks_used(activity.num_kv_blocks_used);
  if (activity.gpu) *proto.mutable_gpu() = GpuToProto(*activity.gpu);
  return proto;
}

NodeActivity FromProto(const v1::NodeActivity& proto) {
  NodeActivity activity = {
      .num_passes = Count(proto.num_passes()),
      .num_rows = Count(proto.num_rows()),
      .num_pass_sessions = Count(proto.num_pass_sessions()),
      .num_prefill_chunks = Count(proto.num_prefill_chunks()),
      .num_preemptions = Count(proto.num_preemptions()),
      .num_decode_calls = Count(proto.num_decode_calls()),
      .decode_queue_seconds = ToSeconds(proto.decode_queue_time()),
      .num_prefill_calls = Count(proto.num_prefill_calls()),
      .prefill_queue_seconds = ToSeconds(proto.prefill_queue_time()),
      .num_sessions = Count(proto.num_sessions()),
      .num_kv_blocks = Count(proto.num_kv_blocks()),
      .num_kv_blocks_used = Count(proto.num_kv_blocks_used())};
  if (proto.has_gpu()) activity.gpu = GpuFromProto(proto.gpu());
  return activity;
}

}  // namespace outrider
