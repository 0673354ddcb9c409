// SPDX-License-Identifier: Apache-2.0
#include "core/node/node_metrics.h"

#include <algorithm>

namespace outrider {
namespace {

// Those that a node answers with.
constexpr absl::StatusCode kCodes[] = {absl::StatusCode::kOk,
                                       absl::StatusCode::kCancelled,
                                       absl::StatusCode::kUnknown,
                                       absl::StatusCode::kInvalidArgument,
                                       absl::StatusCode::kInternal,
                                       absl::StatusCode::kResourceExhausted,
                                       absl::StatusCode::kUnavailable,
                                       absl::StatusCode::kUnimplemented,
                                       absl::StatusCode::kFailedPrecondition};

void AddCallMetrics(MetricRegistry& registry, const NodeCounters& counters,
                    NodeCall call, const std::string& method) {
  for (const absl::StatusCode code : kCodes) {
    registry.AddSource(
        {.name = "requests_total",
         .help = "Calls answered, by method and status code; Cache is Truncate "
                 "and Release.",
         .kind = MetricRegistry::Kind::kCounter,
         .labels = {{"method", method},
                    {"code", absl::StatusCodeToString(code)}},
         .read = [&counters, call, code] {
           return static_cast<double>(counters.num_finished(call, code));
         }});
  }
  registry.AddDurationSource("queue_seconds", "Calls that wait for the model.",
                             {{"method", method}}, counters.queued(call));
  registry.AddDurationSource("compute_seconds",
                             "Calls that have the model, queue not counted.",
                             {{"method", method}}, counters.computed(call));
}

double UsageRatio(const NodeCounters& counters,
                  const SessionTable::Options& limits) {
  const double of_sessions =
      static_cast<double>(counters.num_sessions) / limits.max_sessions;
  if (limits.max_cached_tokens == 0) return of_sessions;
  return std::max(of_sessions, static_cast<double>(counters.num_cached_tokens) /
                                   limits.max_cached_tokens);
}

}  // namespace

void AddNodeMetrics(MetricRegistry& registry, const NodeCounters& counters,
                    const std::string& method, const NodeFlags& flags) {
  AddCallMetrics(registry, counters, NodeCall::kModel, method);
  AddCallMetrics(registry, counters, NodeCall::kCache, "Cache");
  registry.AddSource({.name = "requests_waiting",
                      .help = "Calls that wait for the model.",
                      .read = [&counters] {
                        return static_cast<double>(counters.num_waiting());
                      }});
  registry.AddSource({.name = "requests_running",
                      .help = "Calls that have the model.",
                      .read = [&counters] {
                        return static_cast<double>(counters.num_running());
                      }});
  registry.AddSource({.name = "sessions",
                      .help = "Sessions with a cache here.",
                      .read = [&counters] {
                        return static_cast<double>(counters.num_sessions);
                      }});
  registry.AddSource({.name = "kv_cache_tokens",
                      .help = "Tokens cached over all sessions.",
                      .read = [&counters] {
                        return static_cast<double>(counters.num_cached_tokens);
                      }});
  registry.AddSource({.name = "kv_cache_usage_ratio",
                      .help = "The fuller of sessions and cached tokens, "
                              "against --max-sessions and "
                              "--max-cached-tokens.",
                      .read = [&counters, limits = flags.sessions] {
                        return UsageRatio(counters, limits);
                      }});
  registry
      .AddGauge("simulated",
                "1 where a timing model stands for weights, else 0.")
      .Set(flags.simulation.enabled ? 1 : 0);
}

}  // namespace outrider
