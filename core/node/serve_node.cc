// SPDX-License-Identifier: Apache-2.0
#include "core/node/serve_node.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <iostream>
#include <memory>
#include <thread>

#include "core/base/end_at_signal.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/model/model_config.h"
#include "core/node/describe_model.h"
#include "core/node/hang_watch.h"
#include "core/rpc/server.h"
#include "core/rpc/server_metrics.h"
#include "core/tokenizer/tokenizer_loader.h"

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Longer than a coordinator takes to ask, and hear, that this node drains.
constexpr milliseconds kIdleEnough(1500);

constexpr std::chrono::seconds kLastCalls(1);

// Serves until the sessions have ended or moved, which shows in calls no longer
// coming.
void ServeUntilIdle(const NodeCounters& counters, Clock::time_point deadline) {
  int64_t num_seen = counters.num_finished();
  Clock::time_point last_use = Clock::now();
  while (Clock::now() < deadline && Clock::now() < last_use + kIdleEnough) {
    std::this_thread::sleep_for(milliseconds(50));
    const int64_t num_finished = counters.num_finished();
    if (num_finished != num_seen || counters.num_running() > 0) {
      num_seen = num_finished;
      last_use = Clock::now();
    }
  }
}

}  // namespace

absl::Status ServeNode(const ServedNode& served) {
  const ServerFlags& flags = served.flags;
  Node& node = served.node;
  RpcServer::Options rpc = flags.rpc;
  rpc.max_receive_bytes = served.max_receive_bytes;
  rpc.max_calls = served.max_calls;
  // Passes take long.
  CallQueue queue{CallQueue::WithStandby{CallQueue::Spin(flags.spin_us)}};
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::unique_ptr<RpcServer> server,
      RpcServer::Start(rpc, {&served.service, &node.cache_service()}, queue));
  AddServerMetrics(*server, served.metrics);
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::unique_ptr<HttpEndpoint> http,
      StartHttpEndpoint(served.name, flags, served.metrics, *server));
  server->SetServing(true);
  const HangWatch watch(node, *server, served.max_pass);
  std::cout << served.name << " listening on " << server->address() << " ("
            << served.what << ")" << std::endl;
  int signal = 0;
  while (signal == 0 && !node.is_lost()) {
    signal = RpcServer::WaitForTermination(milliseconds(200));
  }
  if (node.is_lost()) {
    EndAtNextSignal();  // nobody waits for one any more
    server->Shutdown(std::chrono::seconds(1));
    watch.AwaitPass();
    return absl::UnavailableError("the device is lost");
  }
  const Clock::time_point deadline =
      Clock::now() + std::chrono::seconds(flags.drain_seconds);
  node.counters().draining = true;  // first, for who watches passes
  server->SetServing(false);
  if (signal == SIGTERM) {
    OUTRIDER_LOG(kInfo) << "draining, at most " << flags.drain_seconds << " s";
    ServeUntilIdle(node.counters(), deadline);
  }
  const auto left = std::chrono::ceil<std::chrono::seconds>(
      std::max(deadline - Clock::now(), Clock::duration::zero()));
  // What is still open where nobody has called for a while does no work: a
  // dialogue, or a request that never came whole.
  server->Shutdown(signal == SIGTERM ? std::min(left, kLastCalls) : left);
  watch.AwaitPass();
  return absl::OkStatus();
}

absl::Status CheckNodeConfig(
    const NodeFlags& flags,
    absl::Status (*check_weights)(const CheckpointOptions& options)) {
  OUTRIDER_RETURN_IF_ERROR(ApplyServerFlags(flags.server));
  if (flags.simulation.enabled) return absl::OkStatus();  // no files to check
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                            LoadTokenizer(flags.model));
  if (check_weights == nullptr) return absl::OkStatus();
  OUTRIDER_RETURN_IF_ERROR(check_weights(flags.Checkpoint()));
  OUTRIDER_ASSIGN_OR_RETURN(const ModelConfig config,
                            ReadModelConfig(flags.model));
  return CheckHeadCovers(
      *tokenizer, {.vocab_size = config.vocab_size, .eos_ids = config.eos_ids});
}

}  // namespace outrider
