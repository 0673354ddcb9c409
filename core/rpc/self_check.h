// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SELF_CHECK_H_
#define OUTRIDER_CORE_RPC_SELF_CHECK_H_

#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include <chrono>
#include <memory>

#include "core/base/mutex.h"
#include "core/rpc/call_queue.h"

namespace outrider {

// Asks a server of this process, by a channel inside the process and so without
// TLS, what a kubelet's gRPC probe asks: Health/Check of "liveness". Its
// threads have to answer; the network does not take part. Thread-safe. The
// server and its queue must outlive its use, and the server may be shut down
// only after Stop: gRPC 1.51 crashes where a call begins on the channel of a
// server that has gone.
class SelfCheck {
 public:
  SelfCheck(grpc::Server& server, CallQueue& queue);

  // Whether it answers SERVING in this time.
  bool Answers(std::chrono::milliseconds patience);
  // From now on the server is not asked, as it takes no calls any more: Answers
  // says whether a thread of its queue is free in that time.
  void Stop();

 private:
  bool ServerAnswers(std::chrono::milliseconds patience)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  CallQueue& queue_;
  const std::shared_ptr<grpc::Channel> channel_;
  Mutex mu_;  // is held while the server is asked
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SELF_CHECK_H_
