// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "coordinator/peers/failure_limit.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/pool/grpc_growing_stub.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/wire/node_description.h"
#include "outrider/v1/drafter.grpc.pb.h"

namespace outrider {

// DraftStub over gRPC. Thread-safe; one serves all sessions of a drafter.
class GrpcDraftStub final : public DraftStub {
 public:
  struct Options {
    CallQueue& queue;
    std::chrono::milliseconds timeout;  // of a call: see FailureLimit; plus
    std::chrono::milliseconds timeout_per_token;  // for each token to append
    // What the channel accepts, and how another is made where the node
    // describes a model whose replies are larger.
    int max_receive_bytes = ChannelOptions().max_receive_bytes;
    ConnectNode connect = {};
  };

  GrpcDraftStub(std::shared_ptr<grpc::Channel> channel, Options options);

  // Rows with ids beyond this are refused; Describe sets it, too.
  void set_vocab_size(int vocab_size) { vocab_size_ = vocab_size; }

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override;

  // Asks the node what it is.
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation);

 private:
  const Options options_;
  const std::unique_ptr<v1::DrafterService::Stub> stub_;  // asks
  GrowingStub<v1::DrafterService> growing_stub_;
  FailureLimit limit_;
  std::atomic<int> vocab_size_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_
