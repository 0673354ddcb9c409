// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_DEVICE_COUNTERS_H_
#define OUTRIDER_CORE_MODEL_DEVICE_COUNTERS_H_

#include <atomic>
#include <cstdint>

namespace outrider {

// What a model on a device of its own counts: written by the threads that run
// its passes, read by scrapes. Each number is right by itself. Thread-safe.
struct DeviceCounters {
  std::atomic<int64_t> num_answered_rows = 0;
  std::atomic<int64_t> num_copied_rows = 0;     // whole ones, to the host
  std::atomic<int64_t> num_undecided_rows = 0;  // of these, asked in vain
  std::atomic<int64_t> num_graphs = 0;          // that are captured now
  std::atomic<int64_t> num_late_graphs = 0;     // captured while it served
  std::atomic<int64_t> num_graph_replays = 0;
  std::atomic<int64_t> num_drawn_tokens = 0;  // that it went on with
  std::atomic<int64_t> num_memory_bytes = 0;  // that the model took
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_DEVICE_COUNTERS_H_
