// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/connect_error.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

std::string Words(const std::string& error) {
  return "failed to connect to all addresses; last error: " + error;
}

TEST(ConnectErrorTest, WhatTheServerDoesNotSayFollowsFromWhatTheClientHas) {
  const std::string hang_up =
      Words("UNAVAILABLE: ipv4:127.0.0.1:7000: Socket closed");
  EXPECT_THAT(ExplainConnectError(hang_up, {}),
              Optional(HasSubstr("pass --tls-ca")));
  EXPECT_THAT(ExplainConnectError(hang_up, {.authority = "ca.pem"}),
              Optional(HasSubstr("pass --tls-cert and --tls-key")));
  EXPECT_THAT(ExplainConnectError(hang_up, {.certificate = "me.pem",
                                            .key = "me.key",
                                            .authority = "ca.pem"}),
              Optional(HasSubstr("does not take the certificate me.pem")));
}

TEST(ConnectErrorTest, OtherWordsAreGivenAsTheyAre) {
  EXPECT_EQ(ExplainConnectError(Words("UNKNOWN: no route to host"), {}),
            "UNKNOWN: no route to host");
}

TEST(ConnectErrorTest, WhereNobodyListensOrAnswersThereIsNothingToExplain) {
  EXPECT_EQ(ExplainConnectError(Words("UNKNOWN: Connection refused"), {}),
            std::nullopt);
  EXPECT_EQ(ExplainConnectError(Words("UNKNOWN: tcp handshaker shutdown"), {}),
            std::nullopt);
  EXPECT_EQ(ExplainConnectError("Socket closed", {}), std::nullopt);
}

TEST(ConnectErrorTest, TheStatusOfACallThatFoundNoConnectionSaysWhy) {
  const std::string words = Words("UNKNOWN: no route to host");
  EXPECT_EQ(Explained(absl::UnavailableError(words), {}),
            absl::UnavailableError("UNKNOWN: no route to host"));
  for (const absl::Status& other :
       {absl::UnavailableError("it drains"), absl::InternalError(words),
        absl::OkStatus()}) {
    EXPECT_EQ(Explained(other, {}), other);
  }
}

}  // namespace
}  // namespace outrider
