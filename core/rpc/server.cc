// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server.h"

#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/handshake_log.h"
#include "core/rpc/malformed_requests.h"
#include "core/rpc/metadata_limits.h"

namespace outrider {
namespace {

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void RpcServer::BlockTerminationSignals() {
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const Options& options, const std::vector<grpc::Service*>& services) {
  OUTRIDER_RETURN_IF_ERROR(CheckServerOptions(options));
  const bool is_unix = IsUnixSocket(options.listen);
  // gRPC would take the file from a server that listens on it.
  if (is_unix) OUTRIDER_RETURN_IF_ERROR(CheckSocketIsFree(options.listen));
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  grpc::ServerBuilder builder;
  int port = 0;
  std::shared_ptr<grpc::ServerCredentials> credentials =
      is_unix ? grpc::InsecureServerCredentials()
              : MakeServerCredentials(options.tls, options.tls_clients);
  if (options.tls.has_identity()) LogFailedHandshakes();
  builder.AddListeningPort(options.listen, credentials, &port);
  // Otherwise a second server on the same port starts, and takes half of the
  // first one's connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Clients may ping every second, with and without calls. Half of it, as pings
  // that were sent a second apart may arrive closer together.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 500);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             kMaxTransportMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, 1024);
  if (options.max_connection_age > std::chrono::milliseconds::zero()) {
    builder.AddChannelArgument(
        GRPC_ARG_MAX_CONNECTION_AGE_MS,
        static_cast<int>(options.max_connection_age.count()));
  }
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.SetMaxSendMessageSize(-1);
  ExplainMalformedRequests(builder);
  for (grpc::Service* service : services) builder.RegisterService(service);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr || port == 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen,
                     is_unix ? ": no socket file can be made there"
                             : ": the port is in use, or the address is not of "
                               "this machine; port 0 picks a free one"));
  }
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  std::unique_ptr<RpcServer> result(new RpcServer(
      {.credentials = std::move(credentials),
       .server = std::move(server),
       .address = is_unix ? options.listen : absl::StrCat(host, ":", port)}));
  result->server_->GetHealthCheckService()->SetServingStatus("liveness", true);
  result->SetServing(false);
  return result;
}

void RpcServer::SetServing(bool serving) {
  serving_ = serving;
  grpc::HealthCheckServiceInterface* health = server_->GetHealthCheckService();
  health->SetServingStatus("", serving);
  health->SetServingStatus("readiness", serving);
}

bool RpcServer::Answers() const {
  // Less than the patience of a probe.
  return self_check_.Answers(std::chrono::seconds(2));
}

int RpcServer::WaitForTermination(std::chrono::milliseconds longest) {
  const sigset_t signals = TerminationSignals();
  const auto nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(longest).count();
  const timespec timeout = {.tv_sec = nanoseconds / 1'000'000'000,
                            .tv_nsec = nanoseconds % 1'000'000'000};
  const int signal = std::max(0, sigtimedwait(&signals, nullptr, &timeout));
  // The next one has its ordinary effect on this thread.
  if (signal != 0) pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  return signal;
}

void RpcServer::Shutdown(std::chrono::seconds deadline) {
  SetServing(false);
  self_check_.Stop();
  server_->Shutdown(std::chrono::system_clock::now() + deadline);
}

namespace {

// A certificate of the node's own keeps nobody out: whoever reached the port
// could draft, verify, and release the sessions of others.
absl::Status CheckNodeAccess(const RpcServer::Options& options) {
  if (options.insecure || IsLoopback(options.listen)) return absl::OkStatus();
  const auto refuse = [&](absl::string_view problem) {
    return absl::InvalidArgumentError(
        absl::StrCat("--listen ", options.listen, " is not on loopback, and ",
                     problem, ", such as --tls-clients outrider-coordinator"));
  };
  if (!options.tls.has_authority()) {
    return refuse(
        "anyone could call this node: add --tls-ca, the authority that signs "
        "the coordinators' certificates, and --tls-clients, a name in them");
  }
  if (options.tls_clients.empty()) {
    return refuse(
        "any certificate that --tls-ca signed could call this node: add "
        "--tls-clients, a name in the coordinators' certificates");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckServerOptions(const RpcServer::Options& options) {
  const bool is_safe = options.insecure || options.tls.has_identity();
  OUTRIDER_RETURN_IF_ERROR(CheckEndpoint(options.listen, is_safe, "--listen"));
  OUTRIDER_RETURN_IF_ERROR(CheckTlsFiles(options.tls));
  const bool checks_clients =
      options.tls.has_identity() && options.tls.has_authority();
  if (!options.tls_clients.empty() && IsUnixSocket(options.listen)) {
    return absl::InvalidArgumentError(
        "--tls-clients names certificates, which nobody shows on a unix socket:"
        " whoever may write to its file may call");
  }
  if (!options.tls_clients.empty() && !checks_clients) {
    return absl::InvalidArgumentError(
        "--tls-clients names certificates, which clients are asked for only "
        "with --tls-cert, --tls-key and --tls-ca");
  }
  return options.is_node ? CheckNodeAccess(options) : absl::OkStatus();
}

}  // namespace outrider
