// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_

#include <grpcpp/channel.h>

#include <atomic>
#include <chrono>
#include <memory>

#include "coordinator/peers/node_stub.h"
#include "coordinator/pool/grpc_growing_stub.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/channel.h"
#include "core/wire/node_description.h"
#include "outrider/v1/verifier.grpc.pb.h"

namespace outrider {

// VerifyStub over gRPC. Thread-safe; one serves all sessions of a verifier.
class GrpcVerifyStub final : public VerifyStub {
 public:
  struct Options {
    CallQueue& queue;
    std::chrono::milliseconds timeout;            // of a call, plus
    std::chrono::milliseconds timeout_per_token;  // for each token to append
    // What the channel accepts, and how another is made where the node
    // describes a model whose replies are larger.
    int max_receive_bytes = ChannelOptions().max_receive_bytes;
    ConnectNode connect = {};
  };

  GrpcVerifyStub(std::shared_ptr<grpc::Channel> channel, Options options);

  // Rows of another size are refused; Describe sets it, too.
  void set_vocab_size(int vocab_size) { vocab_size_ = vocab_size; }

  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation& cancellation) override;

  // Asks the node what it is.
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation);

 private:
  const Options options_;
  const std::unique_ptr<v1::VerifierService::Stub> stub_;  // asks
  GrowingStub<v1::VerifierService> growing_stub_;
  std::atomic<int> vocab_size_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_
