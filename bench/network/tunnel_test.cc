// SPDX-License-Identifier: Apache-2.0
#include "bench/network/tunnel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <thread>

#include "bench/network/echo.h"
#include "core/testing/status_matchers.h"

namespace outrider::bench {
namespace {

using ::outrider::testing::StatusIs;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Free where tests run side by side: by process.
int FreeNetwork() { return 2 + getpid() % 250; }

std::unique_ptr<EchoServer> StartEcho(const NetworkNamespace& space,
                                      const std::string& host) {
  const auto entered = ScopedNamespace::Enter(space);
  return entered.ok() ? EchoServer::Start(host).value() : nullptr;
}

class TunnelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<NetworkNamespace> made = NetworkNamespace::Create();
    if (!made.ok() || access("/dev/net/tun", R_OK | W_OK) != 0) {
      GTEST_SKIP() << "NOT RUN: "
                   << (made.ok() ? "/dev/net/tun cannot be opened here"
                                 : made.status().ToString())
                   << ". A Linux machine runs it as root, and a container "
                      "with CAP_SYS_ADMIN, CAP_NET_ADMIN and /dev/net/tun";
    }
    far_.emplace(*std::move(made));
  }

  absl::StatusOr<std::unique_ptr<Tunnel>> Start(TunnelOptions options = {}) {
    options.network = FreeNetwork();
    return Tunnel::Start(*far_, options);
  }

  std::optional<NetworkNamespace> far_;
};

TEST_F(TunnelTest, AnEchoTakesNoLessThanTheRoundTrip) {
  const auto tunnel = Start({.link = {.delay = milliseconds(5)}}).value();
  const auto echo = StartEcho(*far_, tunnel->far_host());
  ASSERT_NE(echo, nullptr);
  const auto achieved = MeasureRoundTrip(echo->address(), 5);
  ASSERT_TRUE(achieved.ok()) << achieved.status();
  EXPECT_GE(*achieved, milliseconds(10));
}

TEST_F(TunnelTest, AConnectionTakesARoundTripToSetUp) {
  const auto tunnel = Start({.link = {.delay = milliseconds(20)}}).value();
  const auto echo = StartEcho(*far_, tunnel->far_host());
  const SocketAddress address = Resolve(echo->address()).value();
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(Connect(address, /*blocks=*/true).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(40));
}

TEST_F(TunnelTest, ANewLinkHoldsForConnectionsThatAreOpen) {
  const auto tunnel = Start().value();
  const auto echo = StartEcho(*far_, tunnel->far_host());
  ASSERT_TRUE(MeasureRoundTrip(echo->address(), 3).ok());
  ASSERT_TRUE(tunnel->SetLink({.delay = milliseconds(10)}).ok());
  EXPECT_GE(MeasureRoundTrip(echo->address(), 3).value(), milliseconds(20));
  EXPECT_THAT(tunnel->SetLink({.delay = -milliseconds(1)}),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(TunnelTest, LostPacketsAreCountedAndTcpRepairsThem) {
  const auto tunnel = Start({.loss = 0.1}).value();
  const auto echo = StartEcho(*far_, tunnel->far_host());
  EXPECT_TRUE(MeasureRoundTrip(echo->address(), 40).ok());
  const Tunnel::Counters counters = tunnel->counters();
  EXPECT_GT(counters.num_lost, 0);
  EXPECT_GT(counters.num_packets, 80);
}

TEST_F(TunnelTest, AFullQueueLosesPackets) {
  const auto tunnel =
      Start({.link = {.delay = std::chrono::seconds(60)}, .queue_bytes = 2000})
          .value();
  const Socket socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress far = Resolve(tunnel->far_host() + ":9").value();
  const std::array<char, 1000> bytes = {};
  for (int i = 0; i < 5; ++i) {
    sendto(socket.fd(), bytes.data(), bytes.size(), 0,
           reinterpret_cast<const sockaddr*>(&far.storage), far.length);
  }
  // One fits; the other four are lost as soon as they are read.
  while (tunnel->counters().num_overflowed < 4) std::this_thread::yield();
  EXPECT_EQ(tunnel->counters().num_packets, 0);
}

TEST_F(TunnelTest, ItsDevicesGoWithIt) {
  const auto count_devices = [] {
    int count = 0;
    struct if_nameindex* const names = if_nameindex();
    for (auto* name = names; name != nullptr && name->if_index != 0; ++name) {
      count += std::string(name->if_name).starts_with("outrider");
    }
    if_freenameindex(names);
    return count;
  };
  const int before = count_devices();
  {
    const auto tunnel = Start().value();
    EXPECT_EQ(count_devices(), before + 1);
  }
  EXPECT_EQ(count_devices(), before);
}

TEST_F(TunnelTest, ANetworkNumberIsUsedOnce) {
  const auto first = Start().value();
  EXPECT_THAT(Start(), StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr("choose another network number")));
}

TEST_F(TunnelTest, CalibrateMeasuresAndRefusesWhatIsOff) {
  const LinkOptions link = {.delay = milliseconds(5)};
  const auto tunnel = Start({.link = link}).value();
  // Wide bounds by jitter that is not there: a busy machine is no failure.
  const auto achieved = Calibrate(
      *tunnel, *far_, {.delay = link.delay, .jitter = milliseconds(4999)});
  ASSERT_TRUE(achieved.ok()) << achieved.status();
  EXPECT_GE(*achieved, milliseconds(10));
  EXPECT_THAT(
      Calibrate(*tunnel, *far_, {.delay = milliseconds(1)}),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("too busy")));
}

TEST_F(TunnelTest, BadOptionsAreRefused) {
  for (const TunnelOptions& bad :
       {TunnelOptions{.loss = 1}, TunnelOptions{.loss = -0.1},
        TunnelOptions{.network = 256}, TunnelOptions{.network = -1},
        TunnelOptions{.link = {.mean_bytes_to_reset = 1}},
        TunnelOptions{.link = {.delay = milliseconds(-1)}}}) {
    EXPECT_THAT(Tunnel::Start(*far_, bad),
                StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(NetworkNamespaceTest, WithoutRootTheRemedyIsSaid) {
  if (getuid() != 0) {
    EXPECT_THAT(NetworkNamespace::Create(),
                StatusIs(absl::StatusCode::kPermissionDenied,
                         HasSubstr("run as root")));
    return;
  }
  const auto create_as_nobody = [] {
    if (setuid(65534) != 0) std::_Exit(2);
    const absl::Status status = NetworkNamespace::Create().status();
    std::_Exit(absl::IsPermissionDenied(status) ? 0 : 1);
  };
  EXPECT_EXIT(create_as_nobody(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace outrider::bench
