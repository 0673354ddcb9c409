// SPDX-License-Identifier: Apache-2.0
// outrider-drafter: guesses the next tokens with a small model, or by n-grams.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/freed_memory.h"
#include "core/base/parse_flags.h"
#include "core/base/status_macros.h"
#include "core/node/cache_service.h"
#include "core/node/describe_model.h"
#include "core/node/node_metrics.h"
#include "core/node/serve_node.h"
#include "core/rpc/channel.h"
#include "core/torch_model/torch_causal_lm.h"
#include "drafter/drafter_service.h"
#include "drafter/measure_draft.h"
#include "drafter/strategy_factory.h"

namespace outrider {
namespace {

absl::Status PrintMeasurement(DraftStrategy& strategy,
                              const NodeDescription& description, bool json) {
  OUTRIDER_ASSIGN_OR_RETURN(const double seconds,
                            MeasureDraftStep(strategy, description.vocab_size,
                                             description.context_length));
  std::cout << (json ? absl::StrFormat(
                           "{\"draft_step_ms\": %.6f, \"strategy\": \"%s\"}\n",
                           1e3 * seconds, description.draft_strategy)
                     : absl::StrFormat("%s: %.3f ms a draft token\n",
                                       Summary(description), 1e3 * seconds));
  return absl::OkStatus();
}

absl::Status Run(const NodeFlags& flags, const std::string& strategy_name) {
  if (flags.server.check_config) {
    return CheckNodeConfig(
        flags, strategy_name == "model" ? CheckTorchCausalLm : nullptr);
  }
  OUTRIDER_RETURN_IF_ERROR(ApplyServerFlags(flags.server));
  OUTRIDER_ASSIGN_OR_RETURN(StrategyAndDescription made,
                            MakeStrategy(strategy_name, flags));
  NodeDescription& description = made.description;
  description.max_draft_tokens = flags.max_draft_tokens;
  description.build = OUTRIDER_VERSION;
  description.rules = {RuleKind::kRejection, RuleKind::kCoupled};
  if (flags.measure) {
    return PrintMeasurement(*made.strategy, description, flags.json);
  }
  DraftEngine engine(std::move(made.strategy),
                     {.vocab_size = description.vocab_size,
                      .context_length = description.context_length,
                      .max_draft_tokens = flags.max_draft_tokens,
                      .sessions = flags.sessions});
  ModelThread model_thread(flags.max_queue_length, [&] {
    engine.Expire(std::chrono::steady_clock::now());
    NodeCounters& counters = model_thread.counters();
    counters.num_sessions = engine.sessions().num_sessions();
    counters.num_cached_tokens = engine.sessions().num_cached_tokens();
  });
  MetricRegistry metrics(
      {{"role", "drafter"}, {"model_name", description.model_name}});
  AddNodeMetrics(metrics, model_thread.counters(), "Draft", flags);
  DrafterServiceImpl service(engine, model_thread, description);
  CacheServiceImpl cache_service(
      {.truncate = [&engine](
                       const RequestHeader& header,
                       int length) { return engine.Truncate(header, length); },
       .release =
           [&engine](const RequestHeader& header) {
             return engine.Release(header);
           }},
      model_thread);
  return ServeNode(
      {.name = "outrider-drafter",
       .what = Summary(description),
       .flags = flags,
       .services = {&service, &cache_service},
       .metrics = metrics,
       .counters = model_thread.counters(),
       .max_receive_bytes = DrafterServiceImpl::MaxRequestBytes(description)});
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  CLI::App app(
      "outrider-drafter serves DrafterService: it guesses the next tokens.",
      "outrider-drafter");
  app.set_version_flag("--version", OUTRIDER_VERSION);
  outrider::NodeFlags flags;
  flags.server.rpc.listen = "127.0.0.1:7001";
  std::string strategy = "model";
  outrider::AddNodeFlags(app, flags);
  outrider::AddSimulatedAcceptance(app, flags.simulation);
  app.add_option("--strategy", strategy,
                 "model: a small model; ngram: prompt lookup, which needs only "
                 "the tokenizer of --model")
      ->group("Model")
      ->check(CLI::IsMember({"model", "ngram"}))
      ->capture_default_str();
  app.footer(
      "Example:\n  outrider-drafter --model models/demo-draft --listen "
      "127.0.0.1:7001");
  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  flags.sessions.lease = std::chrono::seconds(flags.lease_seconds);
  outrider::KeepFreedMemory();
  outrider::RpcServer::BlockTerminationSignals();
  outrider::SetUpGrpc();
  const absl::Status status = outrider::Run(flags, strategy);
  if (!status.ok()) {
    std::cerr << "outrider-drafter: " << status.message() << std::endl;
    return flags.server.check_config ? outrider::kExitBadFlags : 1;
  }
  return 0;
}
