// SPDX-License-Identifier: Apache-2.0
// outrider-coordinator: tokenises, runs the rounds, applies the acceptance
// rule.
#include <CLI/CLI.hpp>
#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "coordinator/generation_service.h"
#include "coordinator/node_pool.h"
#include "coordinator/readiness.h"
#include "core/base/parse_flags.h"
#include "core/base/status_macros.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/server.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/wire/reply_format_names.h"

namespace outrider {
namespace {

struct Flags {
  std::string tokenizer = {};
  bool require_drafter = false;
  int draft_timeout_ms = 2000;
  int verify_timeout_ms = 30000;
  int num_threads = 2;
  int drain_seconds = 30;
  NodePool::Options nodes = {};
  RpcServer::Options server = {.listen = "127.0.0.1:7000"};
  GenerationServiceImpl::Options service = {};
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--verifier", flags.nodes.verifiers,
                 "HOST:PORT of a verifier; may be repeated")
      ->required();
  app.add_option("--drafter", flags.nodes.drafters,
                 "HOST:PORT of a drafter; may be repeated; without one, "
                 "decoding is plain");
  app.add_option("--tokenizer", flags.tokenizer,
                 "model directory with the tokenizer.json of the verifier's "
                 "model; without it only token ids are served");
  app.add_option("--listen", flags.server.listen,
                 "HOST:PORT to serve; port 0 picks a free one")
      ->capture_default_str();
  app.add_option("-k,--num-speculative-tokens",
                 flags.service.default_draft_tokens,
                 "draft tokens a round where a request does not say")
      ->check(CLI::Range(0, 1024))
      ->capture_default_str();
  app.add_option("--min-draft-probability",
                 flags.service.default_min_draft_probability,
                 "draft fewer than K tokens where the drafter is unsure: stop "
                 "once the probability of its first choices, multiplied, is "
                 "below this; 0: never; where a request does not say")
      ->check(CLI::Range(0.0, 0.999999))
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--reply-format",
         [&flags](const std::string& name) {
           if (name != "auto") {
             flags.service.default_reply_format = ReplyFormatNames().at(name);
           }
         },
         "what verifiers send back where a request does not say: full, sparse, "
         "tokens; auto: tokens at temperature 0, else sparse")
      ->check(CLI::IsMember({"auto", "full", "sparse", "tokens"}))
      ->default_str("auto");
  app.add_option("--max-sessions", flags.service.max_sessions,
                 "generations at the same time")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_flag("--require-drafter", flags.require_drafter,
               "exit where a drafter does not fit the verifier, in place of "
               "decoding without it");
  app.add_flag("--insecure", flags.server.insecure,
               "allow plain text off loopback");
  app.add_option("--draft-timeout-ms", flags.draft_timeout_ms,
                 "longest a draft may take before its round goes on without")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--verify-timeout-ms", flags.verify_timeout_ms,
                 "longest a verification may take before the stream fails")
      ->check(CLI::Range(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--threads", flags.num_threads,
                 "threads that run the rounds of all sessions")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "longest that running generations may take after SIGTERM")
      ->check(CLI::Range(0, 3600))
      ->capture_default_str();
}

absl::Status Serve(Flags flags) {
  for (const std::string& address : flags.nodes.verifiers) {
    OUTRIDER_RETURN_IF_ERROR(
        CheckEndpoint(address, flags.server.insecure, "--verifier"));
  }
  for (const std::string& address : flags.nodes.drafters) {
    OUTRIDER_RETURN_IF_ERROR(
        CheckEndpoint(address, flags.server.insecure, "--drafter"));
  }
  std::unique_ptr<Tokenizer> tokenizer;
  if (!flags.tokenizer.empty()) {
    OUTRIDER_ASSIGN_OR_RETURN(tokenizer, LoadTokenizer(flags.tokenizer));
    flags.nodes.tokenizer_hash = tokenizer->fingerprint();
  }
  flags.nodes.draft_timeout = std::chrono::milliseconds(flags.draft_timeout_ms);
  flags.nodes.verify_timeout =
      std::chrono::milliseconds(flags.verify_timeout_ms);

  CallQueue queue(flags.num_threads);
  NodePool pool(flags.nodes, queue);
  GenerationServiceImpl service(
      {.pool = pool, .queue = queue, .tokenizer = tokenizer.get()},
      flags.service);
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<RpcServer> server,
                            RpcServer::Start(flags.server, {&service}));
  std::cout << "outrider-coordinator listening on " << server->address()
            << std::endl;
  pool.Start();
  const absl::Status status =
      ServeUntilTermination(pool, *server, flags.require_drafter);
  server->SetServing(false);
  service.Drain(std::chrono::seconds(flags.drain_seconds));
  server->Shutdown(std::chrono::seconds(1));
  return status;
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
  if (const auto exit_status = outrider::ParseFlags(app, argc, argv)) {
    return *exit_status;
  }
  outrider::RpcServer::BlockTerminationSignals();
  outrider::SetUpGrpc();
  const absl::Status status = outrider::Serve(std::move(flags));
  if (!status.ok()) {
    std::cerr << "outrider-coordinator: " << status.message() << std::endl;
    return 1;
  }
  return 0;
}
