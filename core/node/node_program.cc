// SPDX-License-Identifier: Apache-2.0
#include "core/node/node_program.h"

#include <CLI/CLI.hpp>
#include <chrono>
#include <csignal>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/end_at_signal.h"
#include "core/base/freed_memory.h"
#include "core/base/last_words.h"
#include "core/base/log.h"
#include "core/base/parse_flags.h"
#include "core/base/status_macros.h"
#include "core/node/describe_model.h"
#include "core/node/free_ports.h"
#include "core/node/kv_memory.h"
#include "core/node/node_metrics.h"
#include "core/node/serve_node.h"
#include "core/rpc/channel.h"
#include "core/rpc/tls_metrics.h"
#include "core/telemetry/process_metrics.h"

namespace outrider {
namespace {

// Tokens that a node has to hold at least: a short session and its round.
constexpr int kLeastContext = 64;

absl::StatusOr<int> SetUpBlocks(const NodeFlags& flags, CausalLm& model,
                                const NodeDescription& description) {
  OUTRIDER_ASSIGN_OR_RETURN(const KvMemory memory,
                            ParseKvMemory(flags.kv_cache_memory));
  const int64_t round = kLeastContext + flags.max_draft_tokens;
  const int64_t longest = description.context_length;
  return SetUpKvBlocks(model, memory, std::min(round, longest),
                       longest * flags.scheduling.sessions.max_sessions);
}

absl::Status Serve(const NodeProgram& program, const NodeFlags& flags,
                   LoadedModel loaded,
                   std::unique_ptr<EndAtSignal> until_it_serves) {
  const NodeDescription description = std::move(loaded.description);
  BatchScheduler::Options scheduling = flags.scheduling;
  scheduling.sessions.sharing = PrefixSharingNames().at(flags.prefix_cache);
  scheduling.sessions.lease = std::chrono::seconds(flags.lease_seconds);
  OUTRIDER_ASSIGN_OR_RETURN(scheduling.sessions.num_blocks,
                            SetUpBlocks(flags, *loaded.model, description));
  Node node(std::move(loaded.model), scheduling, description);
  const auto service = program.make_service(node, description);
  MetricRegistry metrics(
      {{"role", program.role}, {"model_name", description.model_name}});
  AddNodeMetrics(metrics, node, program.method, flags.simulation.enabled);
  AddTlsMetrics(flags.server.rpc.tls, metrics);
  AddProcessMetrics(description.build, metrics);
  until_it_serves.reset();
  return ServeNode(
      {.name = absl::StrCat("outrider-", program.role),
       .what = absl::StrCat(Summary(description), "; ", description.build),
       .flags = flags.server,
       .node = node,
       .service = *service,
       .metrics = metrics,
       .max_receive_bytes = program.max_request_bytes(description),
       .max_calls = flags.MaxCalls(),
       .max_pass = flags.MaxPass()});
}

absl::Status CheckWeights(const NodeFlags& flags,
                          const NodeDescription& description) {
  const absl::Status status =
      CheckExpected(flags.expected_weights, description.weights_hash);
  if (status.ok()) {
    // A drafter of n-grams has none.
    if (!description.weights_hash.empty()) {
      OUTRIDER_LOG(kInfo) << "weights " << description.weights_hash << " of "
                          << description.model_name;
    }
    return status;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("--model ", flags.model, ": ", status.message()));
}

// Flags that can never serve, whatever the files hold.
absl::Status CheckFlags(const NodeProgram& program, const NodeFlags& flags) {
  if (program.check_flags) {
    OUTRIDER_RETURN_IF_ERROR(program.check_flags(flags));
  }
  const bool has_weights =
      !flags.simulation.enabled && program.weights_check() != nullptr;
  if (!has_weights && !flags.expected_weights.empty()) {
    return absl::InvalidArgumentError(
        "--expect-weights needs weights, which neither --simulate nor n-grams "
        "have");
  }
  if (has_weights && flags.device != "cpu" && flags.kernels != "auto") {
    return absl::InvalidArgumentError(
        absl::StrCat("--kernels ", flags.kernels,
                     " are those of a CPU, not of --device ", flags.device));
  }
  return absl::OkStatus();
}

absl::Status Run(const NodeProgram& program, const NodeFlags& flags) {
  if (flags.server.check_config) {
    return CheckNodeConfig(flags, program.weights_check());
  }
  OUTRIDER_RETURN_IF_ERROR(ApplyServerFlags(flags.server));
  // Loading and measuring take minutes, and names that cannot be resolved take
  // long too: nobody waits for signals then.
  auto until_it_serves = std::make_unique<EndAtSignal>();
  if (!flags.measure) {
    OUTRIDER_RETURN_IF_ERROR(CheckPortsAreFree(flags.server));
  }
  OUTRIDER_ASSIGN_OR_RETURN(LoadedModel loaded, program.load(flags));
  OUTRIDER_RETURN_IF_ERROR(CheckWeights(flags, loaded.description));
  if (!loaded.description.numerics.empty()) {
    OUTRIDER_LOG(kInfo) << "kernels " << loaded.description.numerics;
  }
  if (flags.measure) return program.measure(flags, loaded);
  loaded.description.max_draft_tokens = flags.max_draft_tokens;
  loaded.description.build = program.version;
  return Serve(program, flags, std::move(loaded), std::move(until_it_serves));
}

}  // namespace

int RunNodeProgram(const NodeProgram& program, int argc, char** argv) {
  const std::string name = absl::StrCat("outrider-", program.role);
  CLI::App app(program.about, name);
  app.set_version_flag("--version", absl::StrCat(name, " ", program.version));
  NodeFlags flags;
  flags.server.rpc.listen = program.listen;
  AddNodeFlags(app, flags);
  if (program.add_flags) program.add_flags(app, flags);
  app.footer(absl::StrCat("Example:\n  ", name, " ", program.example));
  if (const auto exit_status = ParseFlags(app, argc, argv)) return *exit_status;
  if (const absl::Status good = CheckFlags(program, flags); !good.ok()) {
    SayWhyItEnds(name, good.message());
    return kExitBadFlags;
  }
  KeepFreedMemory();
  RpcServer::BlockTerminationSignals();
  // A node outlives whoever reads its log.
  std::signal(SIGPIPE, SIG_IGN);
  SetUpGrpc();
  const absl::Status status = Run(program, flags);
  if (status.ok()) return 0;
  SayWhyItEnds(name, status.message());
  return flags.server.check_config ? kExitBadFlags : 1;
}

}  // namespace outrider
