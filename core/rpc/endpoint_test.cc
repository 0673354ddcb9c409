// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/endpoint.h"

#include <string>

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
  EXPECT_TRUE(IsResolved("10.1.2.3:1"));
  EXPECT_TRUE(IsResolved("[fd00::7]:1"));
  EXPECT_TRUE(IsResolved("unix:/run/verifier"));
  EXPECT_FALSE(IsResolved("verifier:1"));
  EXPECT_FALSE(IsResolved("10.1.2:1"));
}

TEST(EndpointTest, ASocketFileIsOfThisMachine) {
  for (const char* address : {"unix:/run/verifier", "unix:verifier.sock"}) {
    EXPECT_THAT(CheckEndpoint(address, /*off_loopback=*/false, "--x"), IsOk());
    EXPECT_TRUE(IsLoopback(address));
  }
}

TEST(EndpointTest, ASocketFileThatCannotBeIsRefused) {
  for (const std::string& address :
       {std::string("unix:"), std::string("unix:///run/verifier"),
        "unix:/" + std::string(107, 'x')}) {
    EXPECT_THAT(CheckEndpoint(address, /*off_loopback=*/true, "--verifier"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--verifier needs unix:PATH")))
        << address;
  }
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
        "verifier:65536", "dns:///verifier:7002", "bad host:7002",
        "verifier\t:7002", " verifier:7002", "verifier:-1", "verifier:+7002",
        "verifier: 7002", "verifier:7002 ", "verifier:7002\n"}) {
    EXPECT_THAT(CheckEndpoint(address, /*off_loopback=*/true, "--verifier"),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         HasSubstr("--verifier needs HOST:PORT")))
        << address;
  }
}

TEST(EndpointTest, AnIpv6HostStandsInBrackets) {
  for (const char* address : {":::7002", "fe80::1:7002", "::1:7002",
                              "[::1:7002", "::1]:7002", "a:b:7002"}) {
    EXPECT_THAT(
        CheckEndpoint(address, /*off_loopback=*/true, "--listen",
                      EndpointUse::kListens),
        StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("brackets")))
        << address;
  }
}

TEST(EndpointTest, PortZeroIsForWhoListens) {
  EXPECT_THAT(CheckEndpoint("127.0.0.1:0", /*off_loopback=*/false, "--listen",
                            EndpointUse::kListens),
              IsOk());
  EXPECT_THAT(
      CheckEndpoint("127.0.0.1:0", /*off_loopback=*/false, "--verifier"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at port 0")));
}

}  // namespace
}  // namespace outrider
