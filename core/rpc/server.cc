// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/server.h"

#include <grpc/grpc.h>
#include <grpcpp/impl/codegen/completion_queue_tag.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/end_at_signal.h"
#include "core/base/status_macros.h"
#include "core/rpc/deadline.h"
#include "core/rpc/endpoint.h"
#include "core/rpc/handshake_log.h"
#include "core/rpc/metadata_limits.h"

namespace outrider {
namespace {

// Calls that a connection has room for beyond those that the services take:
// refusals on their way, and what asks a busy process whether it is there.
constexpr int64_t kOtherCalls = 1024;
constexpr int64_t kMostCalls = std::numeric_limits<int>::max();

// They bound the memory of messages that are being read. What says that it is
// small may still be as large as any: gRPC has one limit for all methods.
RequestReads::Limits ReadsOf(const RpcServer::Options& options) {
  constexpr size_t kBytes = 256 << 20;
  const int bytes = std::max(1, options.max_receive_bytes);
  return {.most_reads = std::max<size_t>(kBytes / bytes, 16)};
}
constexpr RequestReads::Limits kSmallReads = {.most_reads = 16};

// How connections are kept, and what they may carry.
void AddArguments(const RpcServer::Options& options,
                  grpc::ServerBuilder& builder) {
  // Otherwise a second server on the same port starts, and takes half of the
  // first one's connections.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 5000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 2000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Clients of several coordinators ping half a second after the last byte,
  // with and without calls. Half of that, as pings may arrive closer together
  // than they were sent.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 250);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE,
                             kMaxTransportMetadataBytes);
  // A client keeps back what is more, and says so to nobody: a process that is
  // only busy would look dead. So the services refuse before that.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             static_cast<int>(std::min<int64_t>(
                                 options.max_calls + kOtherCalls, kMostCalls)));
  if (options.max_connection_age > std::chrono::milliseconds::zero()) {
    builder.AddChannelArgument(
        GRPC_ARG_MAX_CONNECTION_AGE_MS,
        static_cast<int>(options.max_connection_age.count()));
  }
  if (!options.is_node) {
    // Or fast clients would get windows of megabytes for what nobody reads yet.
    // A message that is read gets one of its size.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  // gRPC inflates all of a message before it looks at the size. So nothing is
  // inflated, and a call that announces such messages ends at its headers.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.SetMaxReceiveMessageSize(options.max_receive_bytes);
  builder.SetMaxSendMessageSize(-1);
}

// Of what completes in a queue, and nobody has to hear. It has no state, and
// outlives all queues.
grpc::internal::CompletionQueueTag& ToldToNobody() {
  struct Tag final : grpc::internal::CompletionQueueTag {
    bool FinalizeResult(void** /*tag*/, bool* /*ok*/) override { return false; }
  };
  static auto& tag = *new Tag;
  return tag;
}

}  // namespace

void RpcServer::BlockTerminationSignals() {
  const sigset_t signals = TerminationSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
}

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(
    const Options& options, const std::vector<RpcService*>& services,
    CallQueue& queue) {
  OUTRIDER_RETURN_IF_ERROR(CheckServerOptions(options));
  std::unique_ptr<RpcServer> server(new RpcServer(queue));
  // A node's clients are trusted, and its calls are those of streams that have
  // begun: none waits.
  if (!options.is_node) {
    server->calls_.LimitReads(ReadsOf(options), kSmallReads);
  }
  for (RpcService* service : services) server->Add(*service);
  server->Add(server->health_);
  server->Add(server->reflection_);
  OUTRIDER_RETURN_IF_ERROR(server->Listen(options, queue.server_builder()));
  server->calls_.AwaitNext();
  server->health_.Set("liveness", true);
  server->SetServing(false);
  return server;
}

void RpcServer::Add(RpcService& service) {
  for (RpcMethod& method : service.Methods()) {
    reflection_.Add(method);
    calls_.Add(std::move(method));
  }
}

absl::Status RpcServer::Listen(const Options& options,
                               grpc::ServerBuilder& builder) {
  const bool is_unix = IsUnixSocket(options.listen);
  // gRPC would take the file from a server that listens on it.
  if (is_unix) OUTRIDER_RETURN_IF_ERROR(CheckSocketIsFree(options.listen));
  int port = 0;
  credentials_ = is_unix
                     ? grpc::InsecureServerCredentials()
                     : MakeServerCredentials(options.tls, options.tls_clients);
  if (options.tls.has_identity()) LogFailedHandshakes();
  builder.AddListeningPort(options.listen, credentials_, &port);
  AddArguments(options, builder);
  builder.RegisterAsyncGenericService(&calls_.generic_service());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr || port == 0) {
    server_.reset();
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", options.listen,
                     is_unix ? ": no socket file can be made there"
                             : ": the port is in use, or the address is not of "
                               "this machine; port 0 picks a free one"));
  }
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  address_ = is_unix ? options.listen : absl::StrCat(host, ":", port);
  self_check_.emplace(*server_, calls_.queue());
  return absl::OkStatus();
}

void RpcServer::SetServing(bool serving) {
  serving_ = serving;
  health_.Set("", serving);
  health_.Set("readiness", serving);
}

bool RpcServer::Answers() const {
  // Less than the patience of a probe.
  return self_check_->Answers(std::chrono::seconds(2));
}

int RpcServer::WaitForTermination(std::chrono::milliseconds longest) {
  const sigset_t signals = TerminationSignals();
  const auto nanoseconds =
      std::chrono::duration_cast<std::chrono::nanoseconds>(longest).count();
  const timespec timeout = {.tv_sec = nanoseconds / 1'000'000'000,
                            .tv_nsec = nanoseconds % 1'000'000'000};
  const int signal = std::max(0, sigtimedwait(&signals, nullptr, &timeout));
  if (signal != 0) EndAtNextSignal();
  return signal;
}

void RpcServer::SendAway() {
  SetServing(false);
  self_check_->Stop();
  // C++ has only what also waits, and that takes a single deadline. This may be
  // begun several times, and gRPC then tells all of them that it is over.
  grpc_server_shutdown_and_notify(
      server_->c_server(), calls_.queue().queue()->cq(), &ToldToNobody());
}

void RpcServer::Shutdown(std::chrono::milliseconds deadline) {
  if (server_ == nullptr) return;
  SetServing(false);
  self_check_->Stop();
  health_.EndWatches();
  server_->Shutdown(DeadlineAfter(deadline));
  calls_.AwaitEnd();
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
  OUTRIDER_RETURN_IF_ERROR(CheckEndpoint(options.listen, is_safe, "--listen",
                                         EndpointUse::kListens));
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
