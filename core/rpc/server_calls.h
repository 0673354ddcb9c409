// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SERVER_CALLS_H_
#define OUTRIDER_CORE_RPC_SERVER_CALLS_H_

#include <grpcpp/alarm.h>
#include <grpcpp/generic/async_generic_service.h>

#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/rpc/request_reads.h"
#include "core/rpc/rpc_service.h"
#include "core/rpc/unread_requests.h"

namespace outrider {

// All calls of one server: its methods by their paths, and how many calls there
// are. Thread-safe.
class ServerCalls {
 public:
  explicit ServerCalls(CallQueue& queue) : queue_(queue) {}

  // Both come before the server starts, which registers the service.
  void Add(RpcMethod method);
  // Without it requests are read as they come.
  void LimitReads(const RequestReads::Limits& limits,
                  const RequestReads::Limits& of_small);
  grpc::AsyncGenericService& generic_service() { return service_; }

  // Once it has started: from then on calls are handled as they arrive.
  void AwaitNext() { new ServerCall(*this); }  // deletes itself
  // Once it is shut down: blocks until the last has ended.
  void AwaitEnd();

  CallQueue& queue() const { return queue_; }
  UnreadRequests& unread() { return unread_; }
  const UnreadRequests& unread() const { return unread_; }
  // Null: there is no such method.
  const RpcMethod* Find(absl::string_view path) const;

  // Where they are limited, a call's request is read once it is its turn.
  bool limits_reads() const { return reads_ != nullptr; }
  void EnterReads(const RpcMethod& method, RequestReads::Reader& reader);
  // False: it was refused.
  bool LeaveReads(const RpcMethod& method, RequestReads::Reader& reader);

  // Each call says that it begins and ends; it has its part of the queue.
  grpc::ServerCompletionQueue& Entered();
  void Left();

 private:
  // Requests that are read, and the alarm that rings meanwhile.
  class Reads final : public Completion {
   public:
    Reads(ServerCalls& calls, const RequestReads::Limits& limits)
        : calls_(calls), requests_(limits) {}
    RequestReads& requests() { return requests_; }
    // Both under the lock of all calls.
    void SetAlarm();
    void CancelAlarm() { alarm_.Cancel(); }

   private:
    void OnComplete(bool ok) override;
    ServerCalls& calls_;
    RequestReads requests_;
    grpc::Alarm alarm_;
  };

  Reads& ReadsOf(const RpcMethod& method) const {
    return method.is_small ? *small_reads_ : *reads_;
  }

  CallQueue& queue_;
  UnreadRequests unread_;
  std::unique_ptr<Reads> reads_;        // both or none
  std::unique_ptr<Reads> small_reads_;  // of small methods
  grpc::AsyncGenericService service_;
  absl::flat_hash_map<std::string, RpcMethod> methods_;
  Mutex mu_;
  CondVar changed_;
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  int num_calls_ ABSL_GUARDED_BY(mu_) = 0;  // and alarms that are set
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SERVER_CALLS_H_
