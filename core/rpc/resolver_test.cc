// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/resolver.h"

#include <netdb.h>

#include <future>
#include <stop_token>

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
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

// No DNS server is asked: what it says, and when, depends on where tests run.
SystemResolver WhereTheSystemSays(int error) {
  return SystemResolver([error](auto...) { return error; });
}

TEST(SystemResolverTest, ANameThatIsKnownToHaveNoAddressHasNone) {
  for (const int error : {EAI_NONAME, EAI_NODATA}) {
    SystemResolver resolver = WhereTheSystemSays(error);
    const auto addresses = resolver.Resolve("drafter:7001", {});
    ASSERT_THAT(addresses.status(), IsOk());
    EXPECT_THAT(*addresses, IsEmpty());
  }
}

TEST(SystemResolverTest, WhereNobodyCanBeAskedAnErrorSaysSo) {
  SystemResolver resolver = WhereTheSystemSays(EAI_AGAIN);
  EXPECT_THAT(resolver.Resolve("drafter:7001", {}),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("drafter cannot be resolved")));
}

TEST(SystemResolverTest, WhoIsToldToStopIsNotKeptByALookupThatHangs) {
  std::promise<void> end;
  SystemResolver resolver([ended = end.get_future().share()](auto...) {
    ended.wait();
    return EAI_AGAIN;
  });
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(resolver.Resolve("drafter:7001", stop.get_token()),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("drafter was not waited for")));
  end.set_value();
}

}  // namespace
}  // namespace outrider
