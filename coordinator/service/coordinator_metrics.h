// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_COORDINATOR_METRICS_H_
#define OUTRIDER_COORDINATOR_SERVICE_COORDINATOR_METRICS_H_

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "core/base/log.h"
#include "core/telemetry/metric_registry.h"
#include "core/wire/generation_update.h"

namespace outrider {

// What the coordinator counts: rounds as they are streamed, so that a client
// that adds up its own stream gets the same numbers. Thread-safe; counting is
// atomic additions, but for the histograms' own locks.
class CoordinatorMetrics {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CoordinatorMetrics(MetricRegistry& registry);
  CoordinatorMetrics(const CoordinatorMetrics&) = delete;

  class Tally;  // one generation's: generation_tally.h

  // What happened since the last call, `seconds` ago, for the log; no fields
  // without rounds. acceptance and acceptance_by_position are shares of what
  // was drafted. Sets the gauge effective_k. Not thread-safe with itself.
  LogFields TakeSummary(double seconds);

 private:
  // One for each position; the last counts all from there on.
  static constexpr int kNumPositions = 17;
  using Counters = std::array<prometheus::Counter*, kNumPositions>;
  struct Peer {
    prometheus::Histogram& network;
    prometheus::Counter& sent;
    prometheus::Counter& received;
    std::map<MissReason, prometheus::Counter*> misses;  // constant, too
    prometheus::Counter& reused;
  };
  struct Totals {
    double rounds = 0, tokens = 0, drafted = 0, accepted = 0;
    std::array<double, kNumPositions> offered_at = {};
    std::array<double, kNumPositions> accepted_at = {};
  };

  static Peer AddPeer(MetricRegistry& registry, const std::string& peer);
  static Counters AddPositions(MetricRegistry& registry,
                               const std::string& name,
                               const std::string& help);
  static void Count(const Peer& peer, const RoundStats::Link& link);
  Totals Read() const;

  MetricRegistry& registry_;
  prometheus::Counter& rounds_;
  prometheus::Counter& drafted_;
  prometheus::Counter& accepted_;
  prometheus::Counter& looked_up_;
  prometheus::Counter& passes_;
  prometheus::Counter& wasted_;
  prometheus::Counter& tokens_;
  prometheus::Counter& lossy_;
  prometheus::Counter& quarantined_;
  prometheus::Counter& residuals_lost_;
  const Counters offered_at_;
  const Counters accepted_at_;
  std::map<PlainReason, prometheus::Counter*> fallbacks_;      // constant, too
  std::map<AheadStats::Outcome, prometheus::Counter*> ahead_;  // likewise
  prometheus::Histogram& ahead_wait_;
  prometheus::Histogram& first_token_;
  prometheus::Histogram& per_token_;
  prometheus::Histogram& round_;
  prometheus::Gauge& running_;
  prometheus::Gauge& effective_k_;
  const Peer drafter_;
  const Peer verifier_;
  // Constant: every combination that can happen is added at the start.
  std::map<std::pair<std::string, std::string>, prometheus::Counter*> requests_;
  Totals reported_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_COORDINATOR_METRICS_H_
