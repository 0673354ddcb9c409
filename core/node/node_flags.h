// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_NODE_FLAGS_H_
#define OUTRIDER_CORE_NODE_NODE_FLAGS_H_

#include <chrono>
#include <cstdint>
#include <string>

#include "core/engine/batch_scheduler.h"
#include "core/model/checkpoint_options.h"
#include "core/node/simulation.h"
#include "core/rpc/server_flags.h"
#include "core/wire/expected_weights.h"

// CLI11's, by name only: its header is a large one.
namespace CLI {
class App;
}  // namespace CLI

namespace outrider {

// The flags that drafter and verifier share.
struct NodeFlags {
  std::string model = {};
  ExpectedWeights expected_weights = {};
  std::string device = "cpu";
  std::string dtype = "auto";
  std::string kernels = "auto";
  int threads = 0;  // 0: the cores that this process may use
  std::string kv_cache_memory = "auto";
  std::string prefix_cache = "salted";
  int max_draft_tokens = 16;
  int lease_seconds = 30;
  int max_pass_seconds = 0;  // 0: by the device
  bool measure = false;
  bool json = false;
  SimulationFlags simulation = {};
  BatchScheduler::Options scheduling = {};
  ServerFlags server = {};

  // --threads, or its default.
  int NumThreads() const;
  // --max-pass-seconds, or its default; 0: a pass may take any time.
  std::chrono::seconds MaxPass() const;
  // How many calls it takes at the same time, as sessions and queue are
  // bounded.
  int64_t MaxCalls() const;
  CheckpointOptions Checkpoint() const;
};

void AddNodeFlags(CLI::App& app, NodeFlags& flags);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_NODE_FLAGS_H_
