// SPDX-License-Identifier: Apache-2.0
// outrider-verifier: scores drafts with the target model.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <iterator>
#include <memory>
#include <utility>

#include "core/base/freed_memory.h"
#include "core/base/parse_flags.h"
#include "core/base/status_macros.h"
#include "core/node/cache_service.h"
#include "core/node/describe_model.h"
#include "core/node/measure.h"
#include "core/node/node_metrics.h"
#include "core/node/serve_node.h"
#include "core/rpc/channel.h"
#include "core/sampling/residual.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/torch_model/torch_causal_lm.h"
#include "verifier/verifier_service.h"

namespace outrider {
namespace {

struct ModelAndDescription {
  std::unique_ptr<CausalLm> model;
  NodeDescription description;
};

absl::StatusOr<ModelAndDescription> MakeModel(const NodeFlags& flags) {
  if (flags.simulation.enabled) {
    std::unique_ptr<CausalLm> model =
        MakeSimulatedModel(flags.simulation, "simulated-target");
    NodeDescription description = DescribeSimulated(model->info());
    return ModelAndDescription{std::move(model), std::move(description)};
  }
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                            LoadTokenizer(flags.model));
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<CausalLm> model,
                            LoadTorchCausalLm({.model_directory = flags.model,
                                               .device = flags.device,
                                               .dtype = flags.dtype}));
  OUTRIDER_RETURN_IF_ERROR(CheckHeadCovers(*tokenizer, model->info()));
  NodeDescription description = DescribeModel(*tokenizer, model->info());
  return ModelAndDescription{std::move(model), std::move(description)};
}

absl::Status PrintMeasurement(const NodeFlags& flags, int vocab_size,
                              CausalLm& model) {
  MeasureOptions options = {.vocab_size = vocab_size};
  // A timing model takes its time, and the same each time.
  if (flags.simulation.enabled) {
    options.num_repeats = 3;
    options.num_decoded = 16;
  }
  OUTRIDER_ASSIGN_OR_RETURN(const ModelMeasurement measurement,
                            MeasureModel(model, options));
  std::cout << (flags.json ? ToJson(measurement, model.info())
                           : ToText(measurement, model.info()));
  return absl::OkStatus();
}

absl::Status Run(const NodeFlags& flags) {
  if (flags.server.check_config) {
    return CheckNodeConfig(flags, CheckTorchCausalLm);
  }
  OUTRIDER_RETURN_IF_ERROR(ApplyServerFlags(flags.server));
  OUTRIDER_ASSIGN_OR_RETURN(ModelAndDescription made, MakeModel(flags));
  NodeDescription& description = made.description;
  if (flags.measure) {
    return PrintMeasurement(flags, description.vocab_size, *made.model);
  }
  description.max_draft_tokens = flags.max_draft_tokens;
  description.build = OUTRIDER_VERSION;
  description.reply_formats = {std::begin(kReplyFormats),
                               std::end(kReplyFormats)};
  description.rules = {RuleKind::kRejection, RuleKind::kBlock,
                       RuleKind::kCoupled};

  VerifyEngine engine(std::move(made.model),
                      {.vocab_size = description.vocab_size,
                       .max_draft_tokens = flags.max_draft_tokens,
                       .sessions = flags.sessions});
  ModelThread model_thread(flags.max_queue_length, [&] {
    engine.Expire(std::chrono::steady_clock::now());
    NodeCounters& counters = model_thread.counters();
    counters.num_sessions = engine.sessions().num_sessions();
    counters.num_cached_tokens = engine.sessions().num_cached_tokens();
  });
  MetricRegistry metrics(
      {{"role", "verifier"}, {"model_name", description.model_name}});
  AddNodeMetrics(metrics, model_thread.counters(), "Verify", flags);
  metrics.AddSource(
      {.name = "residuals_lost_total",
       .help = "Refused drafts whose residual rounding left empty.",
       .kind = MetricRegistry::Kind::kCounter,
       .read = [] { return static_cast<double>(NumResidualsLost()); }});
  VerifierServiceImpl service(engine, model_thread, description);
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
      {.name = "outrider-verifier",
       .what = Summary(description),
       .flags = flags,
       .services = {&service, &cache_service},
       .metrics = metrics,
       .counters = model_thread.counters(),
       .max_receive_bytes = VerifierServiceImpl::MaxRequestBytes(description)});
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  CLI::App app(
      "outrider-verifier serves VerifierService: it scores drafts with the "
      "target model.",
      "outrider-verifier");
  app.set_version_flag("--version", OUTRIDER_VERSION);
  outrider::NodeFlags flags;
  flags.server.rpc.listen = "127.0.0.1:7002";
  outrider::AddNodeFlags(app, flags);
  app.footer(
      "Example:\n  outrider-verifier --model models/demo-target --listen "
      "127.0.0.1:7002");
  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  flags.sessions.lease = std::chrono::seconds(flags.lease_seconds);
  outrider::KeepFreedMemory();
  outrider::RpcServer::BlockTerminationSignals();
  outrider::SetUpGrpc();
  const absl::Status status = outrider::Run(flags);
  if (!status.ok()) {
    std::cerr << "outrider-verifier: " << status.message() << std::endl;
    return flags.server.check_config ? outrider::kExitBadFlags : 1;
  }
  return 0;
}
