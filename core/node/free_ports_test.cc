// SPDX-License-Identifier: Apache-2.0
#include "core/node/free_ports.h"

#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/rpc/call_queue.h"
#include "core/rpc/server.h"
#include "core/telemetry/http_endpoint.h"
#include "core/telemetry/metric_registry.h"
#include "core/testing/own_loopback.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::OwnLoopback;

absl::Status Check(const std::string& listen, const std::string& metrics = "") {
  return CheckPortsAreFree(
      {.rpc = {.listen = listen}, .metrics_listen = metrics});
}

// A server without services, or why there is none.
struct Served {
  explicit Served(const RpcServer::Options& options)
      : server(RpcServer::Start(options, {}, queue)) {}

  CallQueue queue{/*num_threads=*/1};
  absl::StatusOr<std::unique_ptr<RpcServer>> server;
};

// What checking says of an address where a server listens is what another
// server says. It is free again once that has gone.
void ExpectToldAsByAServer(const std::string& listen) {
  std::optional<Served> first(std::in_place,
                              RpcServer::Options{.listen = listen});
  ASSERT_THAT(first->server, IsOk());
  const std::string address = (*first->server)->address();
  const absl::Status told = Check(address);
  EXPECT_EQ(told, Served({.listen = address}).server.status());
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  (*first->server)->Shutdown(std::chrono::milliseconds(0));
  first.reset();
  EXPECT_THAT(Check(address), IsOk());
}

TEST(FreePortsTest, APortInUseIsToldAsTheServerTellsIt) {
  ExpectToldAsByAServer(OwnLoopback());
}

TEST(FreePortsTest, ASocketFileInUseIsToldAsTheServerTellsIt) {
  ExpectToldAsByAServer(
      absl::StrCat("unix:", ::testing::TempDir(), "/free_ports_", getpid()));
}

TEST(FreePortsTest, AnAddressOfAnotherMachineIsToldAsTheServerTellsIt) {
  const absl::Status told = Check("192.0.2.1:7001");
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(
      told,
      Served({.listen = "192.0.2.1:7001", .insecure = true}).server.status());
}

TEST(FreePortsTest, APortOfMetricsInUseIsToldAsItsServerTellsIt) {
  const auto start = [](const std::string& listen) {
    return HttpEndpoint::Start({.listen = listen,
                                .metrics = [] { return std::string(); },
                                .serving = [] { return true; },
                                .alive = [] { return true; }});
  };
  auto server = start(OwnLoopback());
  ASSERT_THAT(server, IsOk());
  const std::string address = (*server)->address();
  const absl::Status told = Check("127.0.0.1:0", address);
  EXPECT_EQ(told, start(address).status());
  EXPECT_EQ(told.code(), absl::StatusCode::kUnavailable);
  server->reset();
  EXPECT_THAT(Check("127.0.0.1:0", address), IsOk());
}

}  // namespace
}  // namespace outrider
