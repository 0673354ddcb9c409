// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_CHILD_CANCELLATION_H_
#define OUTRIDER_CORE_BASE_CHILD_CANCELLATION_H_

#include <cstdint>

#include "core/base/cancellation.h"

namespace outrider {

// For as long as it exists, what cancels `parent` cancels `child`. Both must
// outlive it.
class CancellationLink {
 public:
  CancellationLink(Cancellation& parent, Cancellation& child)
      : parent_(parent),
        registration_(parent.OnCancel([&child] { child.Cancel(); })) {}
  CancellationLink(const CancellationLink&) = delete;
  CancellationLink& operator=(const CancellationLink&) = delete;
  ~CancellationLink() { parent_.Forget(registration_); }

 private:
  Cancellation& parent_;
  const uint64_t registration_;
};

// Is cancelled with its parent, which must outlive it, or alone before that.
class ChildCancellation {
 public:
  explicit ChildCancellation(Cancellation& parent)
      : parent_(parent), link_(parent, own_) {}

  Cancellation& get() { return own_; }
  // Whether it was cancelled alone.
  bool is_given_up() const { return own_.cancelled() && !parent_.cancelled(); }

 private:
  Cancellation& parent_;
  Cancellation own_;
  CancellationLink link_;  // last: it refers to the others
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_CHILD_CANCELLATION_H_
