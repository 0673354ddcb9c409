// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/resolver.h"

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

TEST(SystemResolverTest, LocalhostIsThisMachineOnce) {
  SystemResolver resolver;
  const auto addresses = resolver.Resolve("localhost:7002", {});
  ASSERT_THAT(addresses.status(), IsOk());
  // IPv4 where there is any, and then no IPv6 beside it.
  EXPECT_THAT(*addresses, Contains("127.0.0.1:7002"));
  EXPECT_THAT(*addresses, Not(Contains("[::1]:7002")));
}

TEST(SystemResolverTest, AnAddressIsItself) {
  SystemResolver resolver;
  for (const char* address : {"127.0.0.2:7001", "[::1]:7001"}) {
    const auto addresses = resolver.Resolve(address, {});
    ASSERT_THAT(addresses.status(), IsOk());
    EXPECT_THAT(*addresses, ElementsAre(address));
  }
}

TEST(SystemResolverTest, ANameThatCannotBeHasNoAddressOrCannotBeAsked) {
  // What it is depends on whether a DNS server can be reached; never addresses.
  SystemResolver resolver;
  const auto addresses = resolver.Resolve("-:7001", {});
  if (addresses.ok()) {
    EXPECT_TRUE(addresses->empty());
  } else {
    EXPECT_EQ(addresses.status().code(), absl::StatusCode::kUnavailable);
  }
}

TEST(SystemResolverTest, WhoIsToldToStopIsNotKept) {
  SystemResolver resolver;
  std::stop_source stop;
  stop.request_stop();
  // The answer may be there already.
  const auto addresses = resolver.Resolve("name.invalid:1", stop.get_token());
  if (addresses.ok()) {
    EXPECT_TRUE(addresses->empty());
  }
}

}  // namespace
}  // namespace outrider
