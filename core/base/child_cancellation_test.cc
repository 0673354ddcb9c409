// SPDX-License-Identifier: Apache-2.0
#include "core/base/child_cancellation.h"

#include "gtest/gtest.h"

namespace outrider {
namespace {

TEST(ChildCancellationTest, IsCancelledWithItsParent) {
  Cancellation parent;
  ChildCancellation child(parent);
  EXPECT_FALSE(child.get().cancelled());
  parent.Cancel();
  EXPECT_TRUE(child.get().cancelled());
  EXPECT_FALSE(child.is_given_up());
  ChildCancellation late(parent);
  EXPECT_TRUE(late.get().cancelled());
}

TEST(ChildCancellationTest, MayBeCancelledAlone) {
  Cancellation parent;
  ChildCancellation child(parent);
  EXPECT_FALSE(child.is_given_up());
  child.get().Cancel();
  EXPECT_TRUE(child.is_given_up());
  EXPECT_FALSE(parent.cancelled());
}

TEST(ChildCancellationTest, ALinkHoldsForAsLongAsItExists) {
  Cancellation parent;
  Cancellation before;
  Cancellation child;
  { const CancellationLink link(parent, before); }
  const CancellationLink link(parent, child);
  parent.Cancel();
  EXPECT_FALSE(before.cancelled());
  EXPECT_TRUE(child.cancelled());
}

}  // namespace
}  // namespace outrider
