// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_MICRO_ALONE_VERIFY_STUB_H_
#define OUTRIDER_BENCH_MICRO_ALONE_VERIFY_STUB_H_

#include "coordinator/nodes/shared_stubs.h"
#include "coordinator/peers/node_stub.h"

namespace outrider {

// A verifier for a session that has nowhere else to go: a call may take as long
// as the verifier's stub gives it.
class AloneVerifyStub final : public VerifyStub {
 public:
  explicit AloneVerifyStub(SharedVerifyStub& stub) : stub_(stub) {}

  Task<absl::StatusOr<VerifyReply>> Verify(
      const VerifyCall& call, Cancellation& cancellation) override {
    return stub_.Verify(call, stub_.TimeoutOf(call), cancellation);
  }

 private:
  SharedVerifyStub& stub_;
};

}  // namespace outrider

#endif  // OUTRIDER_BENCH_MICRO_ALONE_VERIFY_STUB_H_
