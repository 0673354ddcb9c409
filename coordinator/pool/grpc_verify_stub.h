// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>

#include "coordinator/peers/node_stub.h"
#include "coordinator/pool/grpc_node.h"
#include "core/wire/node_description.h"
#include "outrider/v1/verifier.grpc.pb.h"

namespace outrider {

// VerifyStub over gRPC. Thread-safe; one serves all sessions of a verifier.
class GrpcVerifyStub final : public VerifyStub {
 public:
  using Options = GrpcNodeOptions;

  GrpcVerifyStub(std::shared_ptr<grpc::Channel> channel, Options options);

  // Rows of another size are refused; Describe sets it, too.
  void set_vocab_size(int vocab_size) { node_.set_vocab_size(vocab_size); }

  Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, Cancellation& cancellation) override {
    return Verify(call, TimeoutOf(call), cancellation);
  }
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           std::chrono::milliseconds timeout,
                                           Cancellation& cancellation);
  // How long a call may take that nobody else could answer.
  std::chrono::milliseconds TimeoutOf(const VerifyCall& call) const;

  // Asks the node what it is.
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) {
    return node_.Describe(timeout, cancellation);
  }

 private:
  GrpcNode<v1::VerifierService, v1::VerifierServiceDescribeRequest,
           v1::VerifierServiceDescribeResponse>
      node_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_
