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
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "coordinator/pool/node_pool.h"
#include "coordinator/pool/pool_metrics.h"
#include "coordinator/service/coordinator_flags.h"
#include "coordinator/service/coordinator_metrics.h"
#include "coordinator/service/generation_service.h"
#include "coordinator/service/readiness.h"
#include "core/base/build_version.h"
#include "core/base/last_words.h"
#include "core/base/log.h"
#include "core/base/parse_flags.h"
#include "core/base/status_macros.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/rpc/resolver.h"
#include "core/rpc/server.h"
#include "core/rpc/server_flags.h"
#include "core/rpc/server_metrics.h"
#include "core/rpc/tls_metrics.h"
#include "core/telemetry/process_metrics.h"
#include "core/tokenizer/tokenizer_loader.h"

namespace outrider {
namespace {

using Flags = CoordinatorFlags;

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

// That nodes may take to be told of the sessions that ended last, and all that
// this process has to be taken down.
constexpr std::chrono::milliseconds kTakedown(1250);

// gRPC cuts off what is on its way when clients are sent away. In this time
// those who watch the server's health go by themselves, and all are served yet.
constexpr std::chrono::milliseconds kNotice(250);

// Streams, and then the server, with enough of `longest` left for the rest of
// the process. Ends that at once where it cannot be done in order.
void End(std::chrono::milliseconds longest, GenerationServiceImpl& service,
         RpcServer& server) {
  using std::chrono::milliseconds;
  const auto begin = std::chrono::steady_clock::now();
  server.SetServing(false);
  const milliseconds notice = std::min(kNotice, longest / 8);
  std::this_thread::sleep_for(notice);
  // Or each new call on a connection that is open would be refused for as long
  // as the streams here take, although another coordinator has room.
  server.SendAway();
  const milliseconds drain = longest - std::min(kTakedown, longest / 2);
  if (!service.Drain(drain - notice)) {
    OUTRIDER_LOG(kError) << "some sessions do not end: this process does";
    std::_Exit(1);
  }
  // Calls that are left now are no streams that anybody reads.
  const milliseconds most = GenerationServiceImpl::kLastWords;
  const auto left = std::chrono::floor<milliseconds>(
      begin + std::max(drain, most) - std::chrono::steady_clock::now());
  server.Shutdown(std::clamp(left, milliseconds::zero(), most));
}

absl::Status Serve(Flags flags) {
  std::unique_ptr<Tokenizer> tokenizer;
  if (!flags.tokenizer.empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(tokenizer, LoadTokenizer(flags.tokenizer));
  }
  if (flags.server.check_config) return absl::OkStatus();
  NodePool::Options nodes = NodeOptionsOf(flags);
  if (tokenizer != nullptr) nodes.tokenizer_hash = tokenizer->fingerprint();

  // Each heap keeps what bursts of streams have left in it: no more of them
  // than threads that run rounds, while all of gRPC's and ours would have one.
  mallopt(M_ARENA_MAX, flags.num_threads);
  CallQueue queue(flags.num_threads, CallQueue::Spin(flags.server.spin_us));
  SystemResolver resolver;
  NodePool pool(std::move(nodes), queue, resolver);
  MetricRegistry registry(
      {{"role", "coordinator"}, {"model_name", ModelNameOf(flags)}});
  CoordinatorMetrics metrics(registry);
  AddPoolMetrics(pool, flags.nodes.drafters.size(), registry);
  AddTlsMetrics(flags.server.rpc.tls, registry);
  AddProcessMetrics(kBuildVersion, registry);
  GenerationServiceImpl service({.pool = pool,
                                 .queue = queue,
                                 .tokenizer = tokenizer.get(),
                                 .metrics = metrics},
                                ServiceOptionsOf(flags));
  OUTRIDER_ASSIGN_OR_RETURN(
      const std::unique_ptr<RpcServer> server,
      RpcServer::Start(RpcOptionsOf(flags), {&service}, queue));
  AddServerMetrics(*server, registry);
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<HttpEndpoint> http,
                            StartHttpEndpoint("outrider-coordinator",
                                              flags.server, registry, *server));
  std::cout << "outrider-coordinator listening on " << server->address() << " ("
            << kBuildVersion << ")" << std::endl;
  pool.Start();
  Reporter reporter(metrics);
  const absl::StatusOr<int> signal = ServeUntilTermination(
      pool, *server, flags.require_drafter, [&reporter] { reporter.Tick(); });
  // Only SIGTERM waits for streams.
  const bool waits = signal.ok() && *signal == SIGTERM;
  End(std::chrono::seconds(waits ? flags.server.drain_seconds : 0), service,
      *server);
  return signal.status();
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  CLI::App app(
      "outrider-coordinator serves GenerationService: speculative decoding "
      "with a drafter and a verifier.",
      "outrider-coordinator");
  app.set_version_flag("--version", absl::StrCat("outrider-coordinator ",
                                                 outrider::kBuildVersion));
  outrider::CoordinatorFlags flags;
  outrider::AddCoordinatorFlags(app, flags);
  app.footer(
      "Example:\n  outrider-coordinator --drafter 127.0.0.1:7001 --verifier "
      "127.0.0.1:7002 \\\n      --tokenizer models/demo-target --listen "
      "127.0.0.1:7000");
  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  outrider::RpcServer::BlockTerminationSignals();
  // A coordinator outlives whoever reads its log.
  std::signal(SIGPIPE, SIG_IGN);
  outrider::SetUpGrpc();
  const bool check_config = flags.server.check_config;
  const absl::Status status = outrider::Serve(std::move(flags));
  if (!status.ok()) {
    outrider::SayWhyItEnds("outrider-coordinator", status.message());
    return check_config ? outrider::kExitBadFlags : 1;
  }
  return 0;
}
