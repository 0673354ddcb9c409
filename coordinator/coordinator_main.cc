// SPDX-License-Identifier: Apache-2.0
// outrider-coordinator: tokenises, runs the rounds, applies the acceptance
// rule.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/pool/pool_metrics.h"
#include "coordinator/service/coordinator_metrics.h"
#include "coordinator/service/generation_service.h"
#include "coordinator/service/readiness.h"
#include "core/base/available_cores.h"
#include "core/base/flag_checks.h"
#include "core/base/log.h"
#include "core/base/parse_flags.h"
#include "core/base/status_macros.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/resolver.h"
#include "core/rpc/server.h"
#include "core/rpc/server_flags.h"
#include "core/rpc/tls.h"
#include "core/sampling/draft_flags.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/wire/expected_weights.h"
#include "core/wire/message_limits.h"
#include "core/wire/reply_format_names.h"
#include "core/wire/schedule.h"

namespace outrider {
namespace {

struct Flags {
  std::string tokenizer = {};
  bool require_drafter = false;
  int resolve_seconds = 30;
  int draft_timeout_ms = 2000;
  int verify_timeout_ms = 30000;
  int slow_client_seconds = 60;
  int max_connection_age_seconds = 0;
  // Half the cores, at most 8: rounds are short, and each further thread that
  // polls costs the others wake-ups.
  int num_threads = std::clamp(AvailableCores() / 2, 1, 8);
  NodePool::Options nodes = {};
  ServerFlags server = {.rpc = {.listen = "127.0.0.1:7000"},
                        .drain_seconds = 30};
  GenerationServiceImpl::Options service = {};
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.option_defaults()->group("Nodes");
  app.add_option("--verifier", flags.nodes.verifiers,
                 "HOST:PORT of a verifier, or unix:PATH where its --listen is "
                 "one; may be repeated. A name stands for "
                 "all its addresses, each a verifier of its own (a headless "
                 "Service); with TLS their certificates carry the name")
      ->type_name("ADDRESS")
      ->required();
  app.add_option("--drafter", flags.nodes.drafters,
                 "HOST:PORT of a drafter, as --verifier; without one, decoding "
                 "is plain")
      ->type_name("ADDRESS");
  app.add_option("--resolve-seconds", flags.resolve_seconds,
                 "how often names are resolved again; one without a node that "
                 "is ready, every second")
      ->check(WholeNumberIn(1, 86400))
      ->capture_default_str();
  app.add_option("--tokenizer", flags.tokenizer,
                 "model directory with the tokenizer.json of the verifier's "
                 "model; without it only token ids are served")
      ->type_name("DIR");
  app.add_option("--expect-weights", flags.nodes.expected_weights,
                 "SHA-256 of the weights that verifiers have: those of others "
                 "get no sessions; may be repeated, as for a roll-out")
      ->type_name("HASH")
      ->check(&WhyNoHash);
  app.add_flag("--require-drafter", flags.require_drafter,
               "exit where a drafter does not fit the verifier, in place of "
               "decoding without it");
  app.add_option("--draft-timeout-ms", flags.draft_timeout_ms,
                 "a drafter has failed that has not answered in this time and "
                 "8 times what its slowest answers and passes of late took")
      ->check(WholeNumberIn(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--verify-timeout-ms", flags.verify_timeout_ms,
                 "longest a verification may take before it is sent again")
      ->check(WholeNumberIn(1, 1 << 30))
      ->capture_default_str();
  AddServerFlags(app, flags.server);
  app.option_defaults()->group("Serving");
  app.add_option("--max-sessions", flags.service.max_sessions,
                 "generations at the same time")
      ->check(WholeNumberIn(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--max-waiting", flags.nodes.max_waiting,
                 "of these, how many may wait for room on a verifier before "
                 "their first token; others are told to come later")
      ->check(WholeNumberIn(0, 1 << 20))
      ->capture_default_str();
  app.add_option("--slow-client-seconds", flags.slow_client_seconds,
                 "a client that reads nothing of its stream for so long is "
                 "dropped")
      ->check(WholeNumberIn(1, 86400))
      ->capture_default_str();
  app.add_option("--max-connection-age-seconds",
                 flags.max_connection_age_seconds,
                 "tell clients after about this long to connect anew, so that "
                 "they spread over the coordinators behind a name; streams go "
                 "on to their end; 0: never")
      ->check(WholeNumberIn(0, 86400))
      ->capture_default_str();
  app.add_option("--threads", flags.num_threads,
                 "threads that run the rounds of all sessions")
      ->check(WholeNumberIn(1, 256))
      ->capture_default_str();
  app.option_defaults()->group("Where a request does not say");
  app.add_option_function<std::string>(
         "-k,--num-speculative-tokens",
         [&flags](const std::string& text) {
           int k = 0;
           const bool is_fixed = absl::SimpleAtoi(text, &k);
           if (is_fixed) flags.service.default_draft_tokens = k;
           flags.service.default_draft_length_mode =
               is_fixed ? DraftLengthMode::kFixed : DraftLengthMode::kAuto;
         },
         "draft tokens a round; no more than the nodes take; auto: as many as "
         "pay, chosen for each round from past ones, 0 where none do; 4 for a "
         "request with a seed whose text depends on K")
      ->check(WholeNumberIn(0, 1024, "auto"))
      ->default_str("auto");
  app.add_option("--schedule", flags.service.default_schedule,
                 "when the drafter works: sequential: in turns with the "
                 "verifier; ahead: while that works, as if all drafts stood; "
                 "predraft: meanwhile, for the likeliest verdicts; auto: so "
                 "where it pays, by past rounds; sequential for a request with "
                 "a seed whose text depends on it")
      ->transform(
          CLI::CheckedTransformer(ScheduleNames()).name("").description(""))
      ->type_name("SCHEDULE")
      ->default_str("sequential");
  AddDraftOptionFlags(app, flags.service.default_draft_options);
  app.add_flag("--prompt-lookup", flags.service.default_prompt_lookup,
               "where the text so far says how it may go on, draft from it and "
               "do not call the drafter");
  app.add_option_function<std::string>(
         "--reply-format",
         [&flags](const std::string& name) {
           if (name != "auto") {
             flags.service.default_reply_format = ReplyFormatNames().at(name);
           }
         },
         "what verifiers send back: full, sparse, tokens; auto: what takes the "
         "fewest bytes, which is tokens")
      // Not rounded rows: they are another target, which a request has to name.
      ->check(CLI::IsMember({"auto", "full", "sparse", "tokens"}))
      ->default_str("auto");
}

// Throws where they cannot be, which ParseFlags makes an exit status of.
void CheckNodeAddresses(const Flags& flags) {
  const RpcServer::Options& rpc = flags.server.rpc;
  const bool is_safe = rpc.insecure || rpc.tls.has_authority();
  const auto check = [](const absl::Status& status) {
    if (!status.ok()) throw CLI::ValidationError(std::string(status.message()));
  };
  for (const std::string& address : flags.nodes.verifiers) {
    check(CheckEndpoint(address, is_safe, "--verifier"));
  }
  for (const std::string& address : flags.nodes.drafters) {
    check(CheckEndpoint(address, is_safe, "--drafter"));
  }
}

// "demo-target" of "models/demo-target/".
std::string ModelName(std::string directory) {
  while (!directory.empty() && directory.back() == '/') directory.pop_back();
  const std::string name = directory.substr(directory.rfind('/') + 1);
  return name.empty() ? "unknown" : name;
}

// An acceptance line every 10 s in which there were rounds; and the memory that
// streams have left behind goes back.
class Reporter {
 public:
  explicit Reporter(CoordinatorMetrics& metrics) : metrics_(metrics) {}
  void Tick() {
    const std::chrono::duration<double> elapsed = Clock::now() - last_;
    if (elapsed < std::chrono::seconds(10)) return;
    last_ = Clock::now();
    malloc_trim(0);
    const LogFields summary = metrics_.TakeSummary(elapsed.count());
    if (!summary.empty()) OUTRIDER_LOG(kInfo, summary) << "acceptance";
  }

 private:
  using Clock = CoordinatorMetrics::Clock;
  CoordinatorMetrics& metrics_;
  Clock::time_point last_ = Clock::now();
};

absl::Status Serve(Flags flags) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (!flags.tokenizer.empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(tokenizer, LoadTokenizer(flags.tokenizer));
    flags.nodes.tokenizer_hash = tokenizer->fingerprint();
  }
  if (flags.server.check_config) return absl::OkStatus();
  flags.nodes.tls = flags.server.rpc.tls;
  flags.nodes.channel.credentials = MakeChannelCredentials(flags.nodes.tls);
  flags.nodes.resolve_period = std::chrono::seconds(flags.resolve_seconds);
  flags.nodes.draft_timeout = std::chrono::milliseconds(flags.draft_timeout_ms);
  flags.nodes.verify_timeout =
      std::chrono::milliseconds(flags.verify_timeout_ms);

  flags.service.client_patience =
      std::chrono::seconds(flags.slow_client_seconds);

  // Each heap keeps what bursts of streams have left in it: no more of them
  // than threads that poll, while all of gRPC's and ours would have one.
  mallopt(M_ARENA_MAX, flags.num_threads);
  CallQueue queue(flags.num_threads, CallQueue::Spin(flags.server.spin_us));
  SystemResolver resolver;
  NodePool pool(flags.nodes, queue, resolver);
  MetricRegistry registry(
      {{"role", "coordinator"}, {"model_name", ModelName(flags.tokenizer)}});
  CoordinatorMetrics metrics(registry);
  AddPoolMetrics(pool, flags.nodes.drafters.size(), registry);
  GenerationServiceImpl service({.pool = pool,
                                 .queue = queue,
                                 .tokenizer = tokenizer.get(),
                                 .metrics = metrics},
                                flags.service);
  RpcServer::Options rpc = flags.server.rpc;
  rpc.max_receive_bytes = kMaxGenerateRequestBytes;
  rpc.max_connection_age =
      std::chrono::seconds(flags.max_connection_age_seconds);
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                            RpcServer::Start(rpc, {&service}, queue));
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<HttpEndpoint> http,
                            StartHttpEndpoint("outrider-coordinator",
                                              flags.server, registry, *server));
  std::cout << "outrider-coordinator listening on " << server->address()
            << std::endl;
  pool.Start();
  Reporter reporter(metrics);
  const absl::StatusOr<int> signal = ServeUntilTermination(
      pool, *server, flags.require_drafter, [&reporter] { reporter.Tick(); });
  server->SetServing(false);
  // Only SIGTERM waits for streams.
  const bool waits = signal.ok() && *signal == SIGTERM;
  if (!service.Drain(
          std::chrono::seconds(waits ? flags.server.drain_seconds : 0))) {
    OUTRIDER_LOG(kError) << "some sessions do not end: this process does";
    std::_Exit(1);
  }
  server->Shutdown(std::chrono::seconds(1));
  return signal.status();
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  CLI::App app(
      "outrider-coordinator serves GenerationService: speculative decoding "
      "with a drafter and a verifier.",
      "outrider-coordinator");
  app.set_version_flag("--version", OUTRIDER_VERSION);
  outrider::Flags flags;
  outrider::AddFlags(app, flags);
  app.parse_complete_callback(
      [&flags] { outrider::CheckNodeAddresses(flags); });
  app.footer(
      "Example:\n  outrider-coordinator --drafter 127.0.0.1:7001 --verifier "
      "127.0.0.1:7002 \\\n      --tokenizer models/demo-target --listen "
      "127.0.0.1:7000");
  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  outrider::RpcServer::BlockTerminationSignals();
  outrider::SetUpGrpc();
  const bool check_config = flags.server.check_config;
  const absl::Status status = outrider::Serve(std::move(flags));
  if (!status.ok()) {
    std::cerr << "outrider-coordinator: " << status.message() << std::endl;
    return check_config ? outrider::kExitBadFlags : 1;
  }
  return 0;
}
