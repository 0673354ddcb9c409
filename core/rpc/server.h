// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SERVER_H_
#define OUTRIDER_CORE_RPC_SERVER_H_

#include <grpcpp/server.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/health_service.h"
#include "core/rpc/reflection_service.h"
#include "core/rpc/rpc_service.h"
#include "core/rpc/self_check.h"
#include "core/rpc/server_calls.h"
#include "core/rpc/tls.h"
#include "core/rpc/unread_requests.h"

namespace outrider {

// A gRPC server with health checking (grpc.health.v1) and reflection, that
// drains on SIGTERM or SIGINT.
//
// Health names: "" and "readiness" say whether requests are welcome (they turn
// NOT_SERVING at the drain), "liveness" whether the process works.
class RpcServer {
 public:
  struct Options {
    // HOST:PORT, port 0 picks a free one; or unix:PATH.
    std::string listen = {};
    bool insecure = false;  // plain text off loopback
    TlsFiles tls = {};      // plain text without a certificate
    // Whose certificates are welcome; empty: all that the authority signed.
    std::vector<std::string> tls_clients = {};
    // Serves coordinators alone: off loopback, others must be kept out by
    // tls.authority and tls_clients.
    bool is_node = false;
    int max_receive_bytes = 1 << 20;
    // How many calls the services take at the same time, by their own bounds.
    // All of them may come by one connection.
    int64_t max_calls = 1024;
    // After it a client is told to connect anew, and so may come to another
    // server behind the name; its streams go on to their end. 0: never.
    std::chrono::milliseconds max_connection_age = {};
  };

  // Must be called in main before any thread exists: signals that arrive later
  // are taken by WaitForTermination alone, and by EndAtSignal where that lives.
  static void BlockTerminationSignals();

  // The services and the queue, which has one server at most, must outlive the
  // server. INVALID_ARGUMENT: the address; UNAVAILABLE: it cannot be listened
  // on, such as a port in use.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(
      const Options& options, const std::vector<RpcService*>& services,
      CallQueue& queue);
  ~RpcServer() { Shutdown(std::chrono::seconds(0)); }

  // HOST:PORT with the port that was picked, or unix:PATH.
  const std::string& address() const { return address_; }

  // What it has refused so far that came to no service of its.
  const UnreadRequests& unread() const { return calls_.unread(); }

  void SetServing(bool serving);
  bool serving() const { return serving_; }
  // Whether it answers a liveness check, asked from inside; or, once it takes
  // no calls any more, whether its queue's threads run.
  bool Answers() const;

  // Blocks until a termination signal, at most this long: its number, or 0.
  // Another signal, from then on, ends the process at once.
  static int WaitForTermination(std::chrono::milliseconds longest);
  // NOT_SERVING, and listens no more. Clients are told at once to take their
  // new calls elsewhere, while those in flight go on as before: Shutdown is to
  // come.
  void SendAway();
  // Refuses new calls and waits for those in flight, at most this long; then
  // cancels them. No handler runs, or is waited for, after it.
  void Shutdown(std::chrono::milliseconds deadline);

 private:
  explicit RpcServer(CallQueue& queue) : calls_(queue) {}

  // What it serves, before it listens.
  void Add(RpcService& service);
  absl::Status Listen(const Options& options, grpc::ServerBuilder& builder);

  HealthService health_;
  ReflectionService reflection_;
  ServerCalls calls_;
  std::shared_ptr<grpc::ServerCredentials> credentials_;
  std::unique_ptr<grpc::Server> server_;         // null: it never listened
  mutable std::optional<SelfCheck> self_check_;  // asking changes nothing
  std::string address_;
  std::atomic<bool> serving_ = false;
};

// INVALID_ARGUMENT names the flag that cannot be: an address, a TLS file, or
// plain text off loopback.
absl::Status CheckServerOptions(const RpcServer::Options& options);

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SERVER_H_
