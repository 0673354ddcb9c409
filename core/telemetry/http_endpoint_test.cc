// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/http_endpoint.h"

#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <deque>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "core/telemetry/metric_registry.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

class HttpEndpointTest : public ::testing::Test {
 protected:
  std::unique_ptr<HttpEndpoint> Start(const std::string& listen) {
    auto started = HttpEndpoint::Start(
        {.listen = listen,
         .metrics = [this] { return registry_.Serialize(); },
         .serving = [this] { return serving_.load(); },
         .alive = [this] { return alive_.load(); }});
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }

  MetricRegistry registry_{{{"role", "test"}}};
  std::atomic<bool> serving_ = true;
  std::atomic<bool> alive_ = true;
};

TEST_F(HttpEndpointTest, ServesCountersHistogramsAndWhatIsReadAtTheScrape) {
  prometheus::Counter& rounds =
      registry_.AddCounter("rounds_total", "Rounds.", {{"peer", "a"}});
  registry_.AddCounter("rounds_total", "Rounds.", {{"peer", "b"}}).Increment(7);
  registry_.AddDuration("round_duration_seconds", "One.").Observe(0.002);
  double waiting = 0;
  registry_.AddSource({.name = "requests_waiting",
                       .help = "Queue.",
                       .read = [&] { return waiting; }});
  rounds.Increment(3);
  waiting = 5;

  const auto endpoint = Start("127.0.0.1:0");
  httplib::Client client("http://" + endpoint->address());
  const auto reply = client.Get("/metrics");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
  for (const char* line :
       {"# HELP outrider_rounds_total Rounds.\n",
        "# TYPE outrider_rounds_total counter\n",
        "outrider_rounds_total{role=\"test\",peer=\"a\"} 3\n",
        "outrider_rounds_total{role=\"test\",peer=\"b\"} 7\n",
        "outrider_requests_waiting{role=\"test\"} 5\n",
        "outrider_round_duration_seconds_count{role=\"test\"} 1\n",
        "outrider_round_duration_seconds_bucket{role=\"test\",le=\"0.001\"} 0",
        "outrider_round_duration_seconds_bucket{role=\"test\",le=\"0.0025\"} "
        "1"}) {
    EXPECT_NE(reply->body.find(line), std::string::npos) << line << "\n"
                                                         << reply->body;
  }
}

TEST_F(HttpEndpointTest, HealthFollowsWhatItIsGiven) {
  const auto endpoint = Start("127.0.0.1:0");
  httplib::Client client("http://" + endpoint->address());
  EXPECT_EQ(client.Get("/health")->status, 200);
  serving_ = false;
  EXPECT_EQ(client.Get("/health")->status, 503);
  EXPECT_EQ(client.Get("/other")->status, 404);
}

TEST_F(HttpEndpointTest, ADrainingProgramIsAliveAndNotServing) {
  const auto endpoint = Start("127.0.0.1:0");
  httplib::Client client("http://" + endpoint->address());
  serving_ = false;
  EXPECT_EQ(client.Get("/live")->status, 200);
  EXPECT_EQ(client.Get("/live")->body, "{\"status\":\"alive\"}\n");
  alive_ = false;
  EXPECT_EQ(client.Get("/live")->status, 503);
}

// An open connection on which nothing is said.
class SilentConnection {
 public:
  explicit SilentConnection(int port)
      : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&address),
                      sizeof(address)),
              0);
  }
  SilentConnection(const SilentConnection&) = delete;
  SilentConnection& operator=(const SilentConnection&) = delete;
  ~SilentConnection() { close(socket_); }

  // Begins a request, of which the rest does not come.
  void SayHalf() { EXPECT_EQ(send(socket_, "GET /hea", 8, MSG_NOSIGNAL), 8); }

 private:
  const int socket_;
};

TEST_F(HttpEndpointTest, SlowConnectionsDoNotKeepAProbeWaiting) {
  const auto endpoint = Start("127.0.0.1:0");
  int port = 0;
  ASSERT_TRUE(absl::SimpleAtoi(
      endpoint->address().substr(endpoint->address().rfind(':') + 1), &port));
  std::deque<SilentConnection> slow;
  for (int i = 0; i < 6; ++i) slow.emplace_back(port).SayHalf();
  httplib::Client client("http://" + endpoint->address());
  const auto reply = client.Get("/health");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
}

TEST_F(HttpEndpointTest, APortInUseIsRefused) {
  const auto endpoint = Start("127.0.0.1:0");
  EXPECT_TRUE(absl::IsUnavailable(
      HttpEndpoint::Start({.listen = endpoint->address()}).status()));
}

}  // namespace
}  // namespace outrider
