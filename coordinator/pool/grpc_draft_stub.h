// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>

#include "coordinator/peers/failure_limit.h"
#include "coordinator/peers/node_stub.h"
#include "coordinator/pool/grpc_node.h"
#include "core/wire/node_description.h"
#include "outrider/v1/drafter.grpc.pb.h"

namespace outrider {

// DraftStub over gRPC. Thread-safe; one serves all sessions of a drafter.
class GrpcDraftStub final : public DraftStub {
 public:
  using Options = GrpcNodeOptions;

  GrpcDraftStub(std::shared_ptr<grpc::Channel> channel, Options options);

  // Rows with ids beyond this are refused; Describe sets it, too.
  void set_vocab_size(int vocab_size) { node_.set_vocab_size(vocab_size); }

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override;

  // Asks the node what it is.
  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) {
    return node_.Describe(timeout, cancellation);
  }

 private:
  GrpcNode<v1::DrafterService, v1::DrafterServiceDescribeRequest,
           v1::DrafterServiceDescribeResponse>
      node_;
  FailureLimit limit_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_
