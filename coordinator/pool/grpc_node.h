// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_NODE_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_NODE_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/cancellation.h"
#include "core/base/mutex.h"
#include "core/base/task.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/rpc/connect_error.h"
#include "core/rpc/tls_files.h"
#include "core/rpc/unary_call.h"
#include "core/wire/message_limits.h"
#include "core/wire/node_description.h"

namespace outrider {

// A channel to one node that accepts replies up to this size.
using ConnectNode =
    std::function<std::shared_ptr<grpc::Channel>(int max_receive_bytes)>;

struct GrpcNodeOptions {
  CallQueue& queue;
  std::chrono::milliseconds timeout;            // of a call, plus
  std::chrono::milliseconds timeout_per_token;  // for each token to append
  // What the channel accepts, and how another is made where the node
  // describes a model whose replies are larger.
  int max_receive_bytes = ChannelOptions().max_receive_bytes;
  ConnectNode connect = {};
  TlsFiles tls = {};  // that the channel was made with: errors name them
};

// What the stubs of drafters and verifiers share: the node's description, and
// its generated stub. Draft, Verify, Isolate and Describe go on over another
// channel where replies may become larger than the first one accepts.
// Thread-safe.
template <typename Service, typename DescribeRequest, typename DescribeResponse>
class GrpcNode {
 public:
  using Stub = typename Service::Stub;

  // `largest_reply`: which of the model's limits the node's replies obey.
  GrpcNode(std::shared_ptr<grpc::Channel> channel, GrpcNodeOptions options,
           int MessageLimits::*largest_reply)
      : options_(std::move(options)),
        largest_reply_(largest_reply),
        channel_(std::move(channel)),
        stub_(Service::NewStub(channel_)),
        max_receive_bytes_(options_.max_receive_bytes) {}

  const GrpcNodeOptions& options() const { return options_; }

  // Calls that begin now have this; those in flight end on what they began.
  std::shared_ptr<Stub> stub() const {
    MutexLock lock(mu_);
    return stub_;
  }

  // Whether calls have a connection now; does not make one.
  bool IsConnected() const {
    MutexLock lock(mu_);
    return outrider::IsConnected(*channel_);
  }

  // What the node has said, or 0 before that.
  int vocab_size() const { return vocab_size_; }
  void set_vocab_size(int vocab_size) { vocab_size_ = vocab_size; }

  // Asks the node what it is.
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) {
    const DescribeRequest request;
    const std::shared_ptr<Stub> asked = stub();
    const absl::StatusOr<DescribeResponse> response =
        co_await CallUnary<DescribeResponse>(
            [&](grpc::ClientContext* context, grpc::CompletionQueue* queue) {
              return asked->PrepareAsyncDescribe(context, request, queue);
            },
            {.queue = options_.queue,
             .deadline = timeout,
             .cancellation = cancellation});
    if (!response.ok()) co_return Explained(response.status(), options_.tls);
    NodeDescription description = FromProto(response->node());
    set_vocab_size(description.vocab_size);
    Accept(LimitsOf(description).*largest_reply_);
    co_return description;
  }

 private:
  void Accept(int max_receive_bytes) {
    MutexLock lock(mu_);
    if (max_receive_bytes <= max_receive_bytes_) return;
    channel_ = options_.connect(max_receive_bytes);
    // Nobody is to take it for lost because nobody has called over it yet.
    channel_->GetState(/*try_to_connect=*/true);
    stub_ = Service::NewStub(channel_);
    max_receive_bytes_ = max_receive_bytes;
  }

  const GrpcNodeOptions options_;
  int MessageLimits::*const largest_reply_;
  std::atomic<int> vocab_size_ = 0;
  mutable Mutex mu_;
  std::shared_ptr<grpc::Channel> channel_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Stub> stub_ ABSL_GUARDED_BY(mu_);
  int max_receive_bytes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_NODE_H_
