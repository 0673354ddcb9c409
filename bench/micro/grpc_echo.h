// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_GRPC_ECHO_H_
#define OUTRIDER_BENCH_MICRO_GRPC_ECHO_H_

#include <grpcpp/generic/generic_stub.h>

#include <cstdint>
#include <string>

#include "bench/micro/server_process.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"

namespace outrider {

// Servers and a client that do nothing but send bytes back: what a call costs
// at the least.

// One has the callback API, the other a completion queue that one thread polls.
Served ServeCallbackEcho(const std::string& listen);
Served ServeQueueEcho(const std::string& listen);

// Sizes of a call's messages, as protobuf has them.
struct CallBytes {
  int64_t request = 0;
  int64_t reply = 0;
};

// A client that does nothing but wait for the echo, on a thread of the queue.
class EchoClient {
 public:
  EchoClient(const std::string& address, CallQueue& queue);

  // Dies where the call fails.
  Task<void> Call(CallBytes bytes);

 private:
  CallQueue& queue_;
  grpc::GenericStub stub_;
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_GRPC_ECHO_H_
