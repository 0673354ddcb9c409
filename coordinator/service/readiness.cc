// SPDX-License-Identifier: Apache-2.0
#include "coordinator/service/readiness.h"

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/log.h"

namespace outrider {
namespace {

// Logs, once, what a coordinator waits for that has all else.
class WaitLog {
 public:
  void Waits(const absl::Status& why) {
    const auto now = std::chrono::steady_clock::now();
    if (!since_.has_value()) since_ = now;
    if (is_told_ || now - *since_ < std::chrono::seconds(5)) return;
    is_told_ = true;
    OUTRIDER_LOG(kWarning) << "does not serve yet, as --require-drafter asks: "
                           << why.message();
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> since_;
  bool is_told_ = false;
};

}  // namespace

absl::StatusOr<int> ServeUntilTermination(const NodePool& pool,
                                          RpcServer& server,
                                          bool require_drafter,
                                          const std::function<void()>& tick) {
  bool was_serving = false;
  // Later on streams would be cut off, of every coordinator that the drafter's
  // name is known to. The pool has logged what it does not use.
  bool checks_drafters = require_drafter;
  WaitLog log;
  int signal = 0;
  while (signal == 0) {
    // This comes first: a verifier that is ready is what drafters were held to.
    bool serving = pool.HasVerifier();
    if (checks_drafters) {
      const absl::Status fit = pool.CheckDrafters();
      if (absl::IsFailedPrecondition(fit)) {
        return absl::FailedPreconditionError(
            absl::StrCat("--require-drafter: ", fit.message()));
      }
      if (serving && !fit.ok()) log.Waits(fit);
      serving = serving && fit.ok();
      checks_drafters = !serving;
    }
    if (tick) tick();
    if (serving != was_serving) server.SetServing(serving);
    was_serving = serving;
    signal = RpcServer::WaitForTermination(std::chrono::milliseconds(200));
  }
  return signal;
}

}  // namespace outrider
