// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_VERIFY_CLIENT_H_
#define OUTRIDER_COORDINATOR_VERIFY_CLIENT_H_

#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/session.h"
#include "core/base/task.h"
#include "core/sampling/draft.h"
#include "core/sampling/target_row.h"

namespace outrider {

// Where target rows come from, as the decoder sees it.
class VerifyClient {
 public:
  virtual ~VerifyClient() = default;
  // Brings the verifier's cache up to date with the session and scores the
  // draft: one row more than it has tokens. The rows refer to the session's
  // coins and to nothing else.
  virtual Task<absl::StatusOr<std::vector<TargetRow>>> Score(
      Session& session, const Draft& draft) = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_VERIFY_CLIENT_H_
