// SPDX-License-Identifier: Apache-2.0
#include "core/node/free_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
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
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

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

TEST(FreePortsTest, ASocketFileThatCannotBeMadeIsToldAsTheServerTellsIt) {
  const std::string file =
      absl::StrCat(::testing::TempDir(), "/no_socket_", getpid());
  std::ofstream(file) << "a file of another kind";
  for (const std::string& path : {file, file + "_folder/socket"}) {
    const std::string listen = absl::StrCat("unix:", path);
    const absl::Status told = Check(listen);
    EXPECT_EQ(told, Served({.listen = listen}).server.status());
    EXPECT_THAT(told, StatusIs(absl::StatusCode::kUnavailable,
                               HasSubstr("no socket file can be made there")));
  }
  std::filesystem::remove(file);
}

TEST(FreePortsTest, AWildcardOfIPv4IsEnoughAsForTheServer) {
  const int taken = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 loopback = {};
  loopback.sin6_family = AF_INET6;
  loopback.sin6_addr = in6addr_loopback;
  socklen_t size = sizeof(loopback);
  auto* const name = reinterpret_cast<sockaddr*>(&loopback);
  if (bind(taken, name, size) != 0) GTEST_SKIP() << "there is no IPv6 here";
  ASSERT_EQ(listen(taken, 1), 0);
  ASSERT_EQ(getsockname(taken, name, &size), 0);
  for (const char* host : {"[::]:", "0.0.0.0:"}) {
    const std::string address = absl::StrCat(host, ntohs(loopback.sin6_port));
    EXPECT_THAT(Check(address), IsOk());
    EXPECT_THAT(Served({.listen = address, .insecure = true}).server, IsOk());
  }
  close(taken);
}

TEST(FreePortsTest, OnePortIsNotFreeForTwoServers) {
  std::optional<Served> server(std::in_place,
                               RpcServer::Options{.listen = OwnLoopback()});
  ASSERT_THAT(server->server, IsOk());
  const std::string address = (*server->server)->address();
  (*server->server)->Shutdown(std::chrono::milliseconds(0));
  server.reset();
  EXPECT_THAT(Check(address, "127.0.0.1:0"), IsOk());
  EXPECT_THAT(Check(address, address),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("cannot listen for HTTP on")));
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
