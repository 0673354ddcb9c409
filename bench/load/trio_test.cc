// SPDX-License-Identifier: Apache-2.0
#include "bench/load/trio.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

namespace fs = std::filesystem;

using ::outrider::testing::IsOk;
using ::outrider::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

// Addresses that nobody connects to.
constexpr char kVerifier[] = "127.0.0.1:1";
constexpr char kDrafter[] = "127.0.0.1:2";
constexpr char kDirect[] = "127.0.0.1:3";   // a coordinator of these two
constexpr char kProxied[] = "127.0.0.1:4";  // one of others

// Starts shell scripts in place of the three programs.
class TrioTest : public ::testing::Test {
 protected:
  TrioTest() {
    fs::create_directories(folder_);
    Write("outrider-verifier", Serving(kVerifier));
    Write("outrider-drafter", Serving(kDrafter));
    Write("outrider-coordinator", std::string("case \"$*\" in *'--verifier ") +
                                      kVerifier + " '*) " + Serving(kDirect) +
                                      ";; *) " + Serving(kProxied) + ";; esac");
  }
  ~TrioTest() override { fs::remove_all(folder_); }

  static std::string Serving(const std::string& address) {
    return "echo listening on " + address + " '(a script)'; exec sleep 1000";
  }
  void Write(const std::string& name, const std::string& script) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(path, fs::perms::owner_all);
  }
  absl::StatusOr<std::unique_ptr<Trio>> Start(const LinkOptions& network) {
    return Trio::Start({.programs = folder_.string()}, network, cancellation_);
  }

  const fs::path folder_ =
      fs::path(::testing::TempDir()) / ("trio_" + std::to_string(getpid()));
  Cancellation cancellation_;
};

TEST_F(TrioTest, JitterComesWithTheDelay) {
  EXPECT_THAT(Start({.jitter = std::chrono::milliseconds(1)}), IsOk());
}

TEST_F(TrioTest, OnlyANetworkWithoutAnyEffectIsGoneAround) {
  const auto plain = Start({});
  ASSERT_THAT(plain, IsOk());
  EXPECT_EQ((*plain)->Connect({}).value(), kDirect);
  for (const LinkOptions& link : {LinkOptions{.bytes_per_second = 1e6},
                                  LinkOptions{.mean_bytes_to_drop = 1e4},
                                  LinkOptions{.mean_bytes_to_reset = 1e4}}) {
    const auto trio = Start(link);
    ASSERT_THAT(trio, IsOk());
    // A busy machine misses a round trip of 0, and has then tried to meet it.
    const auto coordinator = (*trio)->Connect({});
    if (absl::IsFailedPrecondition(coordinator.status())) continue;
    EXPECT_EQ(coordinator.value(), kProxied);
  }
}

// The link takes 320 ms to send an echo's 64 bytes, each way. Jitter makes the
// bounds so wide that a busy machine is no failure.
TEST_F(TrioTest, ALimitOfBandwidthDoesNotCountAsAMissedRoundTrip) {
  const auto trio =
      Start({.jitter = std::chrono::milliseconds(90), .bytes_per_second = 200});
  ASSERT_THAT(trio, IsOk());
  const auto coordinator =
      (*trio)->Connect({.drafter_ms = 200, .verifier_ms = 200});
  ASSERT_THAT(coordinator, IsOk());
  EXPECT_EQ(*coordinator, kProxied);
}

TEST_F(TrioTest, ACancellationEndsTheWaitForAProgramThatLoadsOrMeasures) {
  for (const char* name : {"outrider-verifier", "outrider-drafter"}) {
    Write(name, "exec sleep 1000");
  }
  std::jthread interrupt([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancellation_.Cancel();
  });
  const TrioOptions options = {.programs = folder_.string()};
  EXPECT_THAT(Start({}), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(MeasureVerifier(options, cancellation_),
              StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(MeasureDraftStepMs(options, /*is_sampled=*/false, cancellation_),
              StatusIs(absl::StatusCode::kCancelled));
}

TEST_F(TrioTest, AMeasurementThatLacksAFigureIsAnError) {
  const TrioOptions options = {.programs = folder_.string()};
  Write("outrider-verifier",
        "echo '{\"plain_tokens_per_second\": 50, "
        "\"plain_sampled_tokens_per_second\": 40, \"rows_ms\": [20, 21]}'");
  const auto times = MeasureVerifier(options, cancellation_);
  ASSERT_THAT(times, IsOk());
  EXPECT_EQ(times->plain_token_ms, 20);
  EXPECT_EQ(times->plain_sampled_token_ms, 25);
  Write("outrider-verifier", "echo '{\"plain_tokens_per_second\": 50}'");
  EXPECT_THAT(MeasureVerifier(options, cancellation_),
              StatusIs(absl::StatusCode::kInternal,
                       HasSubstr("plain_sampled_tokens_per_second")));
  Write("outrider-drafter", "echo '{}'");
  EXPECT_THAT(
      MeasureDraftStepMs(options, /*is_sampled=*/false, cancellation_),
      StatusIs(absl::StatusCode::kInternal, HasSubstr("draft_step_ms")));
}

TEST_F(TrioTest, AProgramThatHasEndedIsSaidWithItsLastWords) {
  Write("outrider-drafter",
        std::string("echo listening on ") + kDrafter +
            "; while [ ! -e \"$0.end\" ]; do sleep 0.05; done; "
            "head -c 3000 /dev/zero | tr '\\0' x >&2; echo no memory >&2; "
            "exit 3");
  const auto trio = Start({});
  ASSERT_THAT(trio, IsOk());
  EXPECT_THAT((*trio)->CheckPrograms(), IsOk());
  std::ofstream(folder_ / "outrider-drafter.end") << "now";
  absl::Status status;
  while (status.ok()) status = (*trio)->CheckPrograms();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnavailable,
                               AllOf(HasSubstr("outrider-drafter ended with "
                                               "status 3: x"),
                                     HasSubstr("no memory"))));
  EXPECT_EQ((*trio)->CheckPrograms(), status);
}

}  // namespace
}  // namespace outrider::bench
