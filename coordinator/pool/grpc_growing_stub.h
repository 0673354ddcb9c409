// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_GROWING_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_GROWING_STUB_H_

#include <grpcpp/channel.h>

#include <functional>
#include <memory>
#include <utility>

#include "core/base/mutex.h"

namespace outrider {

// A channel to one node that accepts replies up to this size.
using ConnectNode =
    std::function<std::shared_ptr<grpc::Channel>(int max_receive_bytes)>;

// The generated stub of a node whose replies may become larger than its channel
// accepts: then it goes on over another channel. Thread-safe.
template <typename Service>
class GrowingStub {
 public:
  using Stub = typename Service::Stub;

  // Replies of `max_receive_bytes` fit through `channel`.
  GrowingStub(std::shared_ptr<grpc::Channel> channel, int max_receive_bytes,
              ConnectNode connect)
      : connect_(std::move(connect)),
        stub_(Service::NewStub(std::move(channel))),
        max_receive_bytes_(max_receive_bytes) {}

  std::shared_ptr<Stub> get() const {
    MutexLock lock(mu_);
    return stub_;
  }

  // Later calls may bring replies up to this size; those in flight end where
  // they began.
  void Accept(int max_receive_bytes) {
    MutexLock lock(mu_);
    if (max_receive_bytes <= max_receive_bytes_) return;
    stub_ = Service::NewStub(connect_(max_receive_bytes));
    max_receive_bytes_ = max_receive_bytes;
  }

 private:
  const ConnectNode connect_;
  mutable Mutex mu_;
  std::shared_ptr<Stub> stub_ ABSL_GUARDED_BY(mu_);
  int max_receive_bytes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_GROWING_STUB_H_
