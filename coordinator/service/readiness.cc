// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/readiness.h"

#include <chrono>

#include "absl/strings/str_cat.h"

namespace outrider {

absl::StatusOr<int> ServeUntilTermination(const NodePool& pool,
                                          RpcServer& server,
                                          bool require_drafter,
                                          const std::function<void()>& tick) {
  bool was_serving = false;
  int signal = 0;
  while (signal == 0) {
    const absl::Status refused = pool.RefusedDrafter();
    if (require_drafter && !refused.ok()) {
      return absl::FailedPreconditionError(
          absl::StrCat("--require-drafter: ", refused.message()));
    }
    if (tick) tick();
    const bool serving = pool.HasVerifier();
    if (serving != was_serving) server.SetServing(serving);
    was_serving = serving;
    signal = RpcServer::WaitForTermination(std::chrono::milliseconds(200));
  }
  return signal;
}

}  // namespace outrider
