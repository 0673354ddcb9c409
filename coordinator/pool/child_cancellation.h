// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_POOL_CHILD_CANCELLATION_H_
#define OUTRIDER_COORDINATOR_POOL_CHILD_CANCELLATION_H_

#include <cstdint>

#include "core/base/cancellation.h"

namespace outrider {

// Is cancelled with its parent, which must outlive it, or alone before that.
class ChildCancellation {
 public:
  explicit ChildCancellation(Cancellation& parent)
      : parent_(parent),
        registration_(parent.OnCancel([this] { own_.Cancel(); })) {}
  ChildCancellation(const ChildCancellation&) = delete;
  ChildCancellation& operator=(const ChildCancellation&) = delete;
  ~ChildCancellation() { parent_.Forget(registration_); }

  Cancellation& get() { return own_; }
  // Whether it was cancelled alone.
  bool is_given_up() const { return own_.cancelled() && !parent_.cancelled(); }

 private:
  Cancellation& parent_;
  Cancellation own_;
  const uint64_t registration_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_POOL_CHILD_CANCELLATION_H_
