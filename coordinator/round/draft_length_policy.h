// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_ROUND_DRAFT_LENGTH_POLICY_H_
#define OUTRIDER_COORDINATOR_ROUND_DRAFT_LENGTH_POLICY_H_

#include <algorithm>

#include "coordinator/round/session.h"

namespace outrider {

// Says how many drafts the next round may have, from the committed prefix and
// past rounds only: a K that looked at the drafts would bias the output. Under
// -k auto that is a maximum, and OptionalDraftClient chooses K.
class DraftLengthPolicy {
 public:
  virtual ~DraftLengthPolicy() = default;
  virtual int NextDraftLength(const Session& session) = 0;
};

// The same number every round, but for the end, where fewer can be used.
class FixedDraftLength final : public DraftLengthPolicy {
 public:
  explicit FixedDraftLength(int k) : k_(k) {}
  int NextDraftLength(const Session& session) override {
    return std::min(k_, session.MaxDraftLength());
  }

 private:
  const int k_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_ROUND_DRAFT_LENGTH_POLICY_H_
