// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_NODE_ACTIVITY_H_
#define OUTRIDER_CORE_WIRE_NODE_ACTIVITY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "outrider/v1/types.pb.h"

namespace outrider {

// What a node's GPU has done since the node began to serve, and holds now
// (GpuActivity in the proto).
struct GpuActivity {
  std::string name = {};
  int64_t memory_bytes = 0;
  int64_t num_graphs = 0;       // captured, now as memory
  int64_t num_late_graphs = 0;  // of these, while a step waited
  int64_t num_graph_replays = 0;
  int64_t num_answered_rows = 0;
  int64_t num_copied_rows = 0;     // whole ones, to the host
  int64_t num_undecided_rows = 0;  // of these, asked in vain

  bool operator==(const GpuActivity&) const = default;
};

// What a node has done since it started, and holds now (NodeActivity in the
// proto).
struct NodeActivity {
  int64_t num_passes = 0;
  int64_t num_rows = 0;           // of all passes
  int64_t num_pass_sessions = 0;  // in each pass, added up
  int64_t num_prefill_chunks = 0;
  int64_t num_preemptions = 0;
  int64_t num_decode_calls = 0;
  double decode_queue_seconds = 0;  // of all of them
  int64_t num_prefill_calls = 0;
  double prefill_queue_seconds = 0;
  int64_t num_sessions = 0;  // now, as the rest
  int64_t num_kv_blocks = 0;
  int64_t num_kv_blocks_used = 0;
  std::optional<GpuActivity> gpu = {};

  bool operator==(const NodeActivity&) const = default;
};

v1::NodeActivity ToProto(const NodeActivity& activity);
NodeActivity FromProto(const v1::NodeActivity& proto);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_NODE_ACTIVITY_H_
