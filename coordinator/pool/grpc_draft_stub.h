// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_
#define OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_

#include <grpcpp/channel.h>

#include <chrono>
#include <memory>

#include "coordinator/nodes/shared_stubs.h"
#include "coordinator/pool/draft_pace.h"
#include "coordinator/pool/grpc_node.h"
#include "core/wire/node_description.h"
#include "outrider/v1/drafter.grpc.pb.h"

namespace outrider {

// A drafter over gRPC. Thread-safe; one serves all its sessions.
class GrpcDraftStub final : public SharedDraftStub {
 public:
  using Options = GrpcNodeOptions;

  GrpcDraftStub(std::shared_ptr<grpc::Channel> channel, Options options);

  // Rows with ids beyond this are refused; Describe sets it, too.
  void set_vocab_size(int vocab_size) { node_.set_vocab_size(vocab_size); }
  // Whether there is a connection now; does not make one.
  bool IsConnected() const { return node_.IsConnected(); }

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation& cancellation) override;

  Task<absl::StatusOr<NodeDescription>> Describe(
      std::chrono::milliseconds timeout, Cancellation& cancellation) override {
    return node_.Describe(timeout, cancellation);
  }

 private:
  GrpcNode<v1::DrafterService, v1::DrafterServiceDescribeRequest,
           v1::DrafterServiceDescribeResponse>
      node_;
  DraftPace pace_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_GRPC_DRAFT_STUB_H_
