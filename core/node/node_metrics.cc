// SPDX-License-Identifier: Apache-2.0
#include "core/node/node_metrics.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

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
}

void AddGauge(MetricRegistry& registry, const std::string& name,
              const std::string& help, std::function<double()> read) {
  registry.AddSource({.name = name, .help = help, .read = std::move(read)});
}

void AddCounter(MetricRegistry& registry, const std::string& name,
                const std::string& help, const std::atomic<int64_t>& value) {
  registry.AddSource({.name = name,
                      .help = help,
                      .kind = MetricRegistry::Kind::kCounter,
                      .read = [&value] { return static_cast<double>(value); }});
}

void AddPassMetrics(MetricRegistry& registry, const EngineMetrics& engine,
                    const std::string& method) {
  const std::string queued = "What calls waited for passes, by kind of work.";
  registry.AddDurationSource("queue_seconds", queued,
                             {{"method", method}, {"kind", "decode"}},
                             engine.decode_queued);
  registry.AddDurationSource("queue_seconds", queued,
                             {{"method", method}, {"kind", "prefill"}},
                             engine.prefill_queued);
  registry.AddDurationSource("pass_seconds", "Passes of the model.", {},
                             engine.pass_time);
  registry.AddDurationSource("pass_rows", "Rows of a pass, over all sessions.",
                             {}, engine.rows_per_pass);
  registry.AddDurationSource("pass_sessions", "Sessions in a pass.", {},
                             engine.sessions_per_pass);
  AddCounter(registry, "passes_launched_early_total",
             "Passes that were launched while another one ran.",
             engine.num_launched_early);
  AddCounter(registry, "prefill_chunks_total", "Chunks of prompts run.",
             engine.num_chunks);
  const auto add_reprefills = [&](const char* beside_others,
                                  const std::atomic<int64_t>& nanoseconds) {
    registry.AddSource(
        {.name = "reprefill_seconds_total",
         .help =
             "What passes took for texts of streams that had begun "
             "elsewhere, or were forgotten here, by whether anybody else was "
             "at the node.",
         .kind = MetricRegistry::Kind::kCounter,
         .labels = {{"beside_others", beside_others}},
         .read = [&nanoseconds] {
           return static_cast<double>(nanoseconds) * 1e-9;
         }});
  };
  add_reprefills("true", engine.reprefill_time_beside_others);
  add_reprefills("false", engine.reprefill_time_alone);
  AddCounter(registry, "outcomes_drafted_total",
             "Outcomes of drafts in flight that drafts were begun for.",
             engine.num_branches);
  AddCounter(registry, "outcomes_without_room_total",
             "Those that found too few free blocks, or for which none were "
             "looked for, as calls waited for blocks.",
             engine.num_branches_without_room);
  AddCounter(registry, "superseded_calls_total",
             "Calls for such outcomes that a newer step ended.",
             engine.num_superseded);
  AddCounter(registry, "draft_tokens_given_up_total",
             "Tokens drafted for such outcomes in calls that nobody waited "
             "for to their end.",
             engine.num_tokens_given_up);
  AddCounter(registry, "refused_tokens_total",
             "Tokens that the device drew and the draft did not, and those "
             "after them.",
             engine.num_refused_tokens);
  AddCounter(registry, "preemptions_total",
             "Sessions whose blocks were taken for an older one's round, and "
             "texts of new streams that were ended to make room for a stream "
             "that had begun: blocks, or a place among the sessions.",
             engine.num_preempted);
}

void AddCacheMetrics(MetricRegistry& registry, const EngineMetrics& engine) {
  const auto gauge = [&](const std::string& name, const std::string& help,
                         const auto& value) {
    AddGauge(registry, name, help,
             [&value] { return static_cast<double>(value); });
  };
  gauge("requests_waiting",
        "Calls that wait for a pass; not those that draft ahead, whose turn is "
        "after all others.",
        engine.num_waiting);
  gauge("sessions", "Sessions with a cache here.", engine.num_sessions);
  gauge("kv_cache_tokens", "Tokens cached over all sessions.",
        engine.num_cached_tokens);
  gauge("kv_cache_blocks", "Blocks of KV memory, of 16 tokens each.",
        engine.num_blocks);
  gauge("kv_cache_blocks_used", "Blocks of KV memory that sessions own.",
        engine.num_blocks_used);
  gauge("kv_cache_blocks_shared", "Blocks that several sessions own.",
        engine.num_blocks_shared);
  gauge("kv_cache_blocks_kept",
        "Free blocks whose texts are reused where they come again.",
        engine.num_blocks_kept);
  AddCounter(registry, "prefix_cache_queried_tokens_total",
             "Tokens that sessions were filled with which may share blocks.",
             engine.num_sharable_tokens);
  AddCounter(registry, "prefix_cache_hit_tokens_total",
             "Those of them that were cached before.",
             engine.num_reused_tokens);
  AddGauge(registry, "kv_cache_usage_ratio",
           "Blocks of KV memory that sessions own, of all.", [&engine] {
             return static_cast<double>(engine.num_blocks_used) /
                    std::max(1, engine.num_blocks.load());
           });
}

void AddDeviceMetrics(MetricRegistry& registry, const DeviceCounters& device) {
  AddCounter(registry, "device_answered_rows_total",
             "Rows of logits of which the device told what was asked of them.",
             device.num_answered_rows);
  AddCounter(registry, "device_copied_rows_total",
             "Rows of logits copied from the device, whole.",
             device.num_copied_rows);
  AddCounter(registry, "device_undecided_rows_total",
             "Those copied because what the device told did not decide.",
             device.num_undecided_rows);
  AddGauge(registry, "device_graphs",
           "Shapes of steps that are captured as graphs.",
           [&device] { return static_cast<double>(device.num_graphs); });
  AddCounter(registry, "device_late_graphs_total",
             "Graphs that were captured while a step waited for them, as they "
             "had not been before the node served.",
             device.num_late_graphs);
  AddCounter(registry, "device_graph_replays_total",
             "Steps of the model that were one launch of a graph.",
             device.num_graph_replays);
  AddCounter(registry, "device_drawn_tokens_total",
             "Tokens of drafts that the device drew and went on with.",
             device.num_drawn_tokens);
  AddGauge(registry, "device_memory_bytes",
           "Memory of the device that weights, activations and the KV cache "
           "have taken.",
           [&device] { return static_cast<double>(device.num_memory_bytes); });
}

}  // namespace

void AddNodeMetrics(MetricRegistry& registry, const Node& node,
                    const std::string& method, bool is_simulated) {
  const NodeCounters& counters = node.counters();
  AddCallMetrics(registry, counters, NodeCall::kModel, method);
  AddCallMetrics(registry, counters, NodeCall::kCache, "Cache");
  registry.AddDurationSource(
      "compute_seconds", "Passes of a call, and its rows' processing.",
      {{"method", method}}, counters.computed(NodeCall::kModel));
  AddGauge(registry, "requests_running",
           "Calls that are being served, those that wait for a pass included.",
           [&counters] { return static_cast<double>(counters.num_running()); });
  AddPassMetrics(registry, node.engine_metrics(), method);
  AddCacheMetrics(registry, node.engine_metrics());
  if (const DeviceCounters* device = node.model().device_counters()) {
    AddDeviceMetrics(registry, *device);
  }
  registry
      .AddGauge("simulated",
                "1 where a timing model stands for weights, else 0.")
      .Set(is_simulated ? 1 : 0);
}

}  // namespace outrider
