// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_SELF_CHECK_H_
#define OUTRIDER_CORE_RPC_SELF_CHECK_H_

#include <grpcpp/channel.h>
#include <grpcpp/server.h>

#include <chrono>
#include <memory>

#include "core/base/mutex.h"

namespace outrider {

// Asks a server of this process, by a channel inside the process and so without
// TLS, what a kubelet's gRPC probe asks: Health/Check of "liveness". Its
// threads have to answer; the network does not take part. Thread-safe. The
// server must outlive its use, and may be shut down only after Stop: gRPC 1.51
// crashes where a call begins on the channel of a server that has gone.
class SelfCheck {
 public:
  explicit SelfCheck(grpc::Server& server);

  // Whether it answers SERVING in this time.
  bool Answers(std::chrono::milliseconds patience);
  // From now on it is not asked: Answers says yes, as a shutdown has a deadline
  // of its own.
  void Stop();

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  Mutex mu_;  // is held while it is asked
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_SELF_CHECK_H_
