// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SERVER_CALL_H_
#define OUTRIDER_CORE_RPC_SERVER_CALL_H_

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_context.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/mutex.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/message_bytes.h"
#include "core/rpc/parse_message.h"
#include "core/rpc/request_reads.h"
#include "core/rpc/unread_requests.h"

namespace outrider {

struct RpcMethod;
class ServerCalls;

// One call that a server got. Its method's handler is told once the request is
// there, and ends it, then or later, on any thread: with Reply, or with Finish.
// Deletes itself at its end. Thread-safe, for one operation of each at a time.
class ServerCall final : private RequestReads::Reader {
 public:
  // What goes with a call that is more than a request and its reply: told on
  // the queue's threads, and destroyed with the call.
  class Companion {
   public:
    virtual ~Companion() = default;
    // Nobody waits any more; once, at any time.
    virtual void OnCancelled() {}
    virtual void OnWritten(bool /*ok*/) {}  // not ok: the stream is broken
    virtual void OnRead(bool /*ok*/) {}     // not ok: that was all
  };

  explicit ServerCall(ServerCalls& calls);
  grpc::ServerContext& context() { return context_; }
  const std::string& method() const;  // its path, in a handler
  std::chrono::steady_clock::time_point arrived_at() const {
    return arrived_at_;
  }
  bool is_cancelled() const;
  CallQueue& queue() const;  // where a handler that waits goes on
  // The handler calls it first; OnCancelled may come within it.
  void Accompany(std::unique_ptr<Companion> companion);

  // What was read last: see ParseMessage.
  template <typename Message>
  absl::Status Parse(Message& message) {
    return Counted(UnreadReason::kMalformed,
                   ParseMessage(read_, MostBytes(), message));
  }
  void Read() { BeginRead(); }  // the companion is told
  template <typename Message>
  void Write(const Message& message) {
    WriteBytes(message.SerializeAsString());
  }
  void WriteBytes(absl::string_view bytes);  // of a message

  // The end. The call may be gone before it returns.
  template <typename Message>
  void Reply(const Message& message) {
    ReplyBuffer(BytesOfMessage(message));
  }
  void Finish(const grpc::Status& status);

 private:
  class Operation final : public Completion {
   public:
    using Then = void (ServerCall::*)(bool ok);
    Operation(ServerCall& call, Then then) : call_(call), then_(then) {}

   private:
    void OnComplete(bool ok) override;
    ServerCall& call_;
    const Then then_;
  };

  ~ServerCall();
  size_t MostBytes() const;  // of a message of the method's
  void BeginRead() override;
  void Refuse(const absl::Status& status) override;
  absl::Status Counted(UnreadReason reason, absl::Status status);  // if not OK
  void ReplyBuffer(const grpc::ByteBuffer& bytes);
  void OnArrived(bool ok);
  void OnRead(bool ok);
  void OnWritten(bool ok) { companion_->OnWritten(ok); }
  void OnFinished(bool ok);
  void OnDone(bool ok);  // by whichever side
  void Leave();

  ServerCalls& calls_;
  const RpcMethod* method_ = nullptr;
  grpc::GenericServerContext context_;
  grpc::GenericServerAsyncReaderWriter stream_{&context_};
  std::chrono::steady_clock::time_point arrived_at_ = {};  // its headers
  grpc::ByteBuffer read_;
  absl::Status refusal_;    // of its turn to be read
  bool has_place_ = false;  // among the reads of the server
  bool has_request_ = false;
  std::atomic<int> num_to_come_ = 2;  // OnFinished, OnDone, reads, handlers
  mutable Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<Companion> companion_;  // set once, by the handler
  Operation arrived_{*this, &ServerCall::OnArrived};
  Operation was_read_{*this, &ServerCall::OnRead};
  Operation written_{*this, &ServerCall::OnWritten};
  Operation finished_{*this, &ServerCall::OnFinished};
  Operation done_{*this, &ServerCall::OnDone};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SERVER_CALL_H_
