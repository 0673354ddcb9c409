// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/coordinator_flags.h"

#include <CLI/CLI.hpp>
#include <chrono>

#include "absl/strings/numbers.h"
#include "core/base/flag_checks.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/tls.h"
#include "core/sampling/draft_flags.h"
#include "core/wire/expected_weights.h"
#include "core/wire/message_limits.h"
#include "core/wire/reply_format_names.h"
#include "core/wire/schedule.h"

namespace outrider {
namespace {

void AddNodeFlags(CLI::App& app, CoordinatorFlags& flags) {
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
  app.add_flag(
      "--require-drafter", flags.require_drafter,
      "serve only once each drafter's name has an address, and exit where a "
      "drafter that answers by then does not fit the verifier, or stands in "
      "its place, instead of decoding without it");
  app.add_option("--draft-timeout-ms", flags.draft_timeout_ms,
                 "a drafter has failed that has not answered in this time and "
                 "8 times what its slowest answers and passes of late took")
      ->check(WholeNumberIn(1, 1 << 30))
      ->capture_default_str();
  app.add_option("--verify-timeout-ms", flags.verify_timeout_ms,
                 "longest a verification may take before it is sent again")
      ->check(WholeNumberIn(1, 1 << 30))
      ->capture_default_str();
}

void AddServingFlags(CLI::App& app, CoordinatorFlags& flags) {
  app.option_defaults()->group("Serving");
  app.add_option("--max-sessions", flags.service.max_sessions,
                 "generations at the same time; streams that are resumed have "
                 "as many places beside")
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
                 "threads that run the rounds of all sessions; with --spin-us "
                 "one does, and another stands by")
      ->check(WholeNumberIn(1, 256))
      ->capture_default_str();
}

void AddDefaultsOfRequests(CLI::App& app, CoordinatorFlags& flags) {
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
  AddNamedOption(app, "--schedule", flags.service.default_schedule,
                 ScheduleNames(),
                 "when the drafter works: sequential: in turns with the "
                 "verifier; ahead: while that works, as if all drafts stood; "
                 "predraft: meanwhile, for the likeliest verdicts; auto: so "
                 "where it pays, by past rounds; sequential for a request with "
                 "a seed whose text depends on it")
      ->type_name("SCHEDULE")
      ->default_str("sequential");
  AddDraftOptionFlags(app, flags.service.default_draft_options);
  app.add_flag("--prompt-lookup", flags.service.default_prompt_lookup,
               "where the text so far says how it may go on, draft from it and "
               "do not call the drafter");
  app.add_option("--max-plain-tokens", flags.service.max_plain_tokens,
                 "the most tokens that a verifier draws in one call where "
                 "nothing is drafted, and it judges (--reply-format tokens); "
                 "fewer where the call takes little beside them, or they take "
                 "more than 0.2 s; never more than its --max-draft-tokens and "
                 "one")
      ->check(WholeNumberIn(1, 32))
      ->capture_default_str();
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
      ->check(OneOf({"auto", "full", "sparse", "tokens"}))
      ->default_str("auto");
}

// Throws where they cannot be, as flags do that do not parse.
void CheckNodeAddresses(const CoordinatorFlags& flags) {
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

}  // namespace

void AddCoordinatorFlags(CLI::App& app, CoordinatorFlags& flags) {
  AddNodeFlags(app, flags);
  AddServerFlags(app, flags.server);
  AddServingFlags(app, flags);
  AddDefaultsOfRequests(app, flags);
  app.parse_complete_callback([&flags] { CheckNodeAddresses(flags); });
}

NodePoolOptions NodeOptionsOf(const CoordinatorFlags& flags) {
  NodePoolOptions options = flags.nodes;
  options.tls = flags.server.rpc.tls;
  options.channel.credentials = MakeChannelCredentials(options.tls);
  options.resolve_period = std::chrono::seconds(flags.resolve_seconds);
  options.draft_timeout = std::chrono::milliseconds(flags.draft_timeout_ms);
  options.verify_timeout = std::chrono::milliseconds(flags.verify_timeout_ms);
  return options;
}

GenerationServiceImpl::Options ServiceOptionsOf(const CoordinatorFlags& flags) {
  GenerationServiceImpl::Options options = flags.service;
  options.client_patience = std::chrono::seconds(flags.slow_client_seconds);
  return options;
}

RpcServer::Options RpcOptionsOf(const CoordinatorFlags& flags) {
  RpcServer::Options options = flags.server.rpc;
  options.max_receive_bytes = kMaxGenerateRequestBytes;
  // Streams that are resumed have as many places beside.
  options.max_calls = 2 * int64_t{flags.service.max_sessions};
  options.max_connection_age =
      std::chrono::seconds(flags.max_connection_age_seconds);
  return options;
}

std::string ModelNameOf(const CoordinatorFlags& flags) {
  std::string directory = flags.tokenizer;
  while (!directory.empty() && directory.back() == '/') directory.pop_back();
  const std::string name = directory.substr(directory.rfind('/') + 1);
  return name.empty() ? "unknown" : name;
}

}  // namespace outrider
