// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_COUNTERS_H_
#define OUTRIDER_CORE_NODE_NODE_COUNTERS_H_

#include <prometheus/histogram.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "absl/status/status.h"
#include "core/telemetry/metric_registry.h"

namespace outrider {

// Draft or Verify; Truncate or Release.
enum class NodeCall { kModel, kCache };

// What a node counts of its calls: written by them, read by scrapes and by the
// drain. Each number is right by itself; several read together may be of
// different instants. Thread-safe.
class NodeCounters {
 public:
  static constexpr int kNumCodes = 17;  // of gRPC

  void Started() { Add(num_running_, 1); }
  void Finished(NodeCall call, absl::StatusCode code, double compute_seconds) {
    PerCall& mine = calls_[static_cast<int>(call)];
    if (code == absl::StatusCode::kOk) mine.computed.Observe(compute_seconds);
    Add(mine.finished[static_cast<int>(code) % kNumCodes], 1);
    Add(num_finished_, 1);
    Add(num_running_, -1);
  }

  int64_t num_running() const { return num_running_; }
  int64_t num_finished() const { return num_finished_; }
  int64_t num_finished(NodeCall call, absl::StatusCode code) const {
    return calls_[static_cast<int>(call)].finished[static_cast<int>(code)];
  }
  // Seconds, in MetricRegistry::DurationBuckets(); of calls that succeeded.
  const prometheus::Histogram& computed(NodeCall call) const {
    return calls_[static_cast<int>(call)].computed;
  }

  // Set once, by the drain: this node wants no more sessions.
  std::atomic<bool> draining = false;

 private:
  using Count = std::atomic<int64_t>;
  struct PerCall {
    std::array<Count, kNumCodes> finished = {};
    prometheus::Histogram computed{MetricRegistry::DurationBuckets()};
  };
  static void Add(Count& count, int64_t value) {
    count.fetch_add(value, std::memory_order_relaxed);
  }

  std::array<PerCall, 2> calls_;
  Count num_running_ = 0;
  Count num_finished_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_COUNTERS_H_
