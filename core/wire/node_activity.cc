// SPDX-License-Identifier: Apache-2.0
#include "core/wire/node_activity.h"

#include "core/wire/duration_convert.h"

namespace outrider {

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
  return proto;
}

NodeActivity FromProto(const v1::NodeActivity& proto) {
  const auto count = [](uint64_t value) { return static_cast<int64_t>(value); };
  return {.num_passes = count(proto.num_passes()),
          .num_rows = count(proto.num_rows()),
          .num_pass_sessions = count(proto.num_pass_sessions()),
          .num_prefill_chunks = count(proto.num_prefill_chunks()),
          .num_preemptions = count(proto.num_preemptions()),
          .num_decode_calls = count(proto.num_decode_calls()),
          .decode_queue_seconds = ToSeconds(proto.decode_queue_time()),
          .num_prefill_calls = count(proto.num_prefill_calls()),
          .prefill_queue_seconds = ToSeconds(proto.prefill_queue_time()),
          .num_sessions = count(proto.num_sessions()),
          .num_kv_blocks = count(proto.num_kv_blocks()),
          .num_kv_blocks_used = count(proto.num_kv_blocks_used())};
}

}  // namespace outrider
