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

namespace outrider {

// All calls of one server: its methods by their paths, and how many calls there
// are. Thread-safe.
class ServerCalls {
 public:
  explicit ServerCalls(CallQueue& queue) : queue_(queue) {}

  // Both come before the server starts, which registers the service.
  void Add(RpcMethod method);
  void LimitReads(const RequestReads::Limits& limits);
  grpc::AsyncGenericService& generic_service() { return service_; }

  // Once it has started: from then on calls are handled as they arrive.
  void AwaitNext() { new ServerCall(*this); }  // deletes itself
  // Once it is shut down: blocks until the last has ended.
  void AwaitEnd();

  CallQueue& queue() const { return queue_; }
  // Null: there is no such method.
  const RpcMethod* Find(absl::string_view path) const;

  // A call's request is read once it is its turn.
  void EnterReads(RequestReads::Reader& reader);
  bool LeaveReads(RequestReads::Reader& reader);  // false: it was refused

  // Each call says that it begins and ends; it has its part of the queue.
  grpc::ServerCompletionQueue& Entered();
  void Left();

 private:
  // The alarm that rings while requests are read.
  class Ticks final : public Completion {
   public:
    explicit Ticks(ServerCalls& calls) : calls_(calls) {}
    void Set();
    void Cancel() { alarm_.Cancel(); }

   private:
    void OnComplete(bool ok) override;
    ServerCalls& calls_;
    grpc::Alarm alarm_;
  };

  CallQueue& queue_;
  std::unique_ptr<RequestReads> reads_;
  grpc::AsyncGenericService service_;
  absl::flat_hash_map<std::string, RpcMethod> methods_;
  Mutex mu_;
  CondVar changed_;
  Ticks ticks_ ABSL_GUARDED_BY(mu_){*this};
  bool is_ending_ ABSL_GUARDED_BY(mu_) = false;
  int num_calls_ ABSL_GUARDED_BY(mu_) = 0;  // and the alarm, while it is set
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SERVER_CALLS_H_
