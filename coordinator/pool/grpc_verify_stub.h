// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>

#include "coordinator/nodes/shared_stubs.h"
#include "coordinator/pool/grpc_node.h"
#include "core/wire/node_description.h"
#include "outrider/v1/verifier.grpc.pb.h"

namespace outrider {

// A verifier over gRPC. Thread-safe; one serves all its sessions.
class GrpcVerifyStub final : public SharedVerifyStub {
 public:
  using Options = GrpcNodeOptions;

  GrpcVerifyStub(std::shared_ptr<grpc::Channel> channel, Options options);

  // Rows of another size are refused; Describe sets it, too.
  void set_vocab_size(int vocab_size) { node_.set_vocab_size(vocab_size); }
  // Whether there is a connection now; does not make one.
  bool IsConnected() const { return node_.IsConnected(); }

  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           std::chrono::milliseconds timeout,
                                           Cancellation& cancellation) override;
  std::chrono::milliseconds TimeoutOf(const VerifyCall& call) const override;
  Task<absl::StatusOr<bool>> Isolate(const SessionId& session,
                                     std::chrono::milliseconds timeout,
                                     Cancellation& cancellation) override;
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) override {
    return node_.Describe(timeout, cancellation);
  }

 private:
  GrpcNode<v1::VerifierService, v1::VerifierServiceDescribeRequest,
           v1::VerifierServiceDescribeResponse>
      node_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_VERIFY_STUB_H_
