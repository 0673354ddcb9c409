// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server_flags.h"

#include <CLI/CLI.hpp>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "core/base/flag_checks.h"
#include "core/base/help_formatter.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/endpoint.h"

namespace outrider {

void AddServerFlags(CLI::App& app, ServerFlags& flags) {
  app.formatter(std::make_shared<HelpFormatter>());
  app.option_defaults()->group("Serving");
  app.add_option("--listen", flags.rpc.listen,
                 "HOST:PORT to serve; port 0 picks a free one; or unix:PATH, a "
                 "socket file for processes of this machine")
      ->type_name("ADDRESS")
      ->capture_default_str();
  app.add_flag("--insecure", flags.rpc.insecure,
               "allow plain text off loopback");
  app.add_option("--metrics-listen", flags.metrics_listen,
                 "HOST:PORT for /metrics, /health and /live over plain HTTP; "
                 "they hold no prompts; default: not served")
      ->type_name("ADDRESS");
  app.add_flag("--log-json", flags.log_json,
               "log one JSON object a line, in place of text");
  app.add_option("--drain-seconds", flags.drain_seconds,
                 "longest that running sessions may take after SIGTERM")
      ->check(WholeNumberIn(0, 3600))
      ->capture_default_str();
  app.add_option("--spin-us", flags.spin_us,
                 "microseconds for which a thread that has nothing to do asks "
                 "for calls before it sleeps: rounds cost less where it has a "
                 "core to itself, and more where it does not")
      ->check(WholeNumberIn(0, CallQueue::kLongestSpin.count()))
      ->capture_default_str();
  app.add_flag("--check-config", flags.check_config,
               "serve nothing: check flags and files; exit status 0 or 2");
  app.option_defaults()->group("TLS");
  AddTlsFlags(app, flags.rpc.tls);
  app.add_option("--tls-clients", flags.rpc.tls_clients,
                 "serve only clients whose certificate has one of these DNS or "
                 "URI names; may be repeated; needed by a node off loopback; "
                 "default: all that --tls-ca signed")
      ->type_name("NAME");
  app.option_defaults()->group("Options");
  // Here, so that main leaves as it does for a flag that does not parse.
  app.final_callback([&flags] {
    const absl::Status status = ApplyServerFlags(flags);
    if (!status.ok()) throw CLI::ValidationError(std::string(status.message()));
  });
}

void AddTlsFlags(CLI::App& app, TlsFiles& files) {
  app.add_option("--tls-cert", files.certificate,
                 "PEM file with this program's certificate chain; it is read "
                 "again when it changes")
      ->type_name("FILE");
  app.add_option("--tls-key", files.key, "PEM file with its private key")
      ->type_name("FILE");
  app.add_option("--tls-ca", files.authority,
                 "PEM file with the authority of peers: connections to servers "
                 "are TLS, and a server requires client certificates")
      ->type_name("FILE");
}

absl::Status ApplyServerFlags(const ServerFlags& flags) {
  SetLogFormat(flags.log_json ? LogFormat::kJson : LogFormat::kText);
  OUTRIDER_RETURN_IF_ERROR(CheckServerOptions(flags.rpc));
  if (flags.metrics_listen.empty()) return absl::OkStatus();
  const bool is_address =
      !IsUnixSocket(flags.metrics_listen) &&
      CheckEndpoint(flags.metrics_listen, /*off_loopback=*/true, "",
                    EndpointUse::kListens)
          .ok();
  if (is_address) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "--metrics-listen needs HOST:PORT, such as 127.0.0.1:9090, not \"",
      flags.metrics_listen, "\""));
}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> StartHttpEndpoint(
    absl::string_view name, const ServerFlags& flags,
    const MetricRegistry& registry, const RpcServer& server) {
  if (flags.metrics_listen.empty()) return nullptr;
  OUTRIDER_ASSIGN_OR_RETURN(
      std::unique_ptr<HttpEndpoint> endpoint,
      HttpEndpoint::Start(
          {.listen = flags.metrics_listen,
           .metrics = [&registry] { return registry.Serialize(); },
           .serving = [&server] { return server.serving(); },
           .alive = [&server] { return server.Answers(); }}));
  std::cout << absl::StrCat(name, " metrics on ", endpoint->address())
            << std::endl;
  return endpoint;
}

}  // namespace outrider
