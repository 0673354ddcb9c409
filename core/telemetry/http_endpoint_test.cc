// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/http_endpoint.h"

#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <deque>
#include <future>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "core/telemetry/metric_registry.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

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

// A connection whose request does not come at once. Nor does it wait until it
// is accepted.
class SlowConnection {
 public:
  explicit SlowConnection(const std::string& address)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)) {
    int port = 0;
    EXPECT_TRUE(
        absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_TRUE(
        connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0 ||
        errno == EINPROGRESS);
  }
  SlowConnection(const SlowConnection&) = delete;
  SlowConnection& operator=(const SlowConnection&) = delete;
  ~SlowConnection() { close(socket_); }

  // Blocks until the system has taken it, which may be later where many come.
  void AwaitOpen() {
    pollfd opens = {.fd = socket_, .events = POLLOUT, .revents = 0};
    EXPECT_EQ(poll(&opens, 1, /*timeout=*/30000), 1);
  }
  // It may have been closed on us, or be on its way.
  void Say(const std::string& text) {
    send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  }

 private:
  const int socket_;
};

TEST_F(HttpEndpointTest, ConnectionsThatStopInARequestDoNotKeepAProbeWaiting) {
  const auto endpoint = Start("127.0.0.1:0");
  std::deque<SlowConnection> slow;
  for (int i = 0; i < 6; ++i) {
    slow.emplace_back(endpoint->address()).Say("GET /hea");
  }
  httplib::Client client("http://" + endpoint->address());
  const auto reply = client.Get("/health");
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
}

// More of them than there are threads, each with a byte before any single read
// is late.
TEST_F(HttpEndpointTest, ConnectionsThatDripDoNotKeepAProbeWaiting) {
  const auto endpoint = Start("127.0.0.1:0");
  std::deque<SlowConnection> slow;
  for (int i = 0; i < 40; ++i) slow.emplace_back(endpoint->address());
  std::promise<void> end;
  std::thread drips([&slow, is_over = end.get_future()] {
    do {
      for (SlowConnection& connection : slow) connection.Say("x");
    } while (is_over.wait_for(milliseconds(200)) ==
             std::future_status::timeout);
  });
  for (SlowConnection& connection : slow) connection.AwaitOpen();
  httplib::Client client("http://" + endpoint->address());
  const auto reply = client.Get("/health");
  end.set_value();
  drips.join();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->status, 200);
}

// All threads would wait for a second a dozen times.
TEST_F(HttpEndpointTest, ManyThatSayNothingDoNotKeepAProbeWaiting) {
  const auto endpoint = Start("127.0.0.1:0");
  std::deque<SlowConnection> silent;
  for (int i = 0; i < 400; ++i) {
    silent.emplace_back(endpoint->address()).AwaitOpen();
  }
  httplib::Client client("http://" + endpoint->address());
  client.set_read_timeout(/*sec=*/5);
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
