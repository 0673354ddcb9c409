// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_H_
#define OUTRIDER_CORE_NODE_NODE_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "core/engine/node_engine.h"
#include "core/model/causal_lm.h"
#include "core/node/cache_service.h"
#include "core/node/node_counters.h"
#include "core/session/suspect_place.h"
#include "core/wire/node_description.h"

namespace outrider {

// One node without its server: a model behind an engine, what it counts and
// what it says of itself. The same for drafters and verifiers, programs, tests
// and benchmarks; a service of its own hands it calls. Thread-safe.
class Node {
 public:
  // The model's KV blocks are set up, as many as the options say.
  Node(std::unique_ptr<CausalLm> model, BatchScheduler::Options options,
       const NodeDescription& description);

  NodeEngine& engine() { return engine_; }
  NodeCounters& counters() { return counters_; }
  const NodeCounters& counters() const { return counters_; }
  const CausalLm& model() const { return engine_.model(); }
  const EngineMetrics& engine_metrics() const { return engine_.metrics(); }
  RpcService& cache_service() { return cache_service_; }

  // What its replies to openings say of it.
  const v1::ModelIdentity& identity() const { return identity_; }
  SuspectPlace& suspects() { return suspects_; }

  // UNAVAILABLE while it drains, and once it has lost its device.
  absl::Status Describe(v1::NodeDescription& description) const;

  bool is_lost() const { return is_lost_; }

 private:
  const v1::NodeDescription description_;
  const v1::ModelIdentity identity_;
  SuspectPlace suspects_;
  NodeCounters counters_;
  std::atomic<bool> is_lost_ = false;
  NodeEngine engine_;  // after what its threads use
  CacheServiceImpl cache_service_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_H_
