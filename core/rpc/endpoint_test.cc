// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/endpoint.h"

#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

TEST(EndpointTest, HostAndPortAreTakenApart) {
  EXPECT_EQ(HostOf("verifier:7002"), "verifier");
  EXPECT_EQ(PortOf("verifier:7002"), "7002");
  EXPECT_EQ(HostOf("[::1]:7002"), "::1");
  EXPECT_EQ(HostOf("verifier"), "");
  EXPECT_EQ(PortOf("verifier"), "");
}

TEST(EndpointTest, AddressesAreToldFromNames) {
  EXPECT_TRUE(HasNumericHost("10.1.2.3:1"));
  EXPECT_TRUE(HasNumericHost("[fd00::7]:1"));
  EXPECT_FALSE(HasNumericHost("verifier:1"));
  EXPECT_FALSE(HasNumericHost("10.1.2:1"));
}

TEST(EndpointTest, PlainTextStaysOnThisMachine) {
  for (const char* address : {"127.0.0.1:1", "localhost:1", "[::1]:1"}) {
    EXPECT_THAT(CheckEndpoint(address, /*off_loopback=*/false, "--x"), IsOk());
  }
  for (const char* address : {"10.0.0.1:1", "127.example:1", "verifier:1"}) {
    EXPECT_THAT(CheckEndpoint(address, /*off_loopback=*/false, "--x"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("not on loopback")));
    EXPECT_THAT(CheckEndpoint(address, /*off_loopback=*/true, "--x"), IsOk());
  }
}

TEST(EndpointTest, WhatIsNoHostAndPortIsRefused) {
  for (const char* address :
       {"", "verifier", "7002", ":7002", "verifier:", "verifier:http",
        "verifier:65536", "dns:///verifier:7002", "unix:/run/verifier"}) {
    EXPECT_THAT(CheckEndpoint(address, /*off_loopback=*/true, "--verifier"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--verifier needs HOST:PORT")))
        << address;
  }
}

}  // namespace
}  // namespace outrider
