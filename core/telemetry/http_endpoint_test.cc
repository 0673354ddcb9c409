// SPDX-License-Identifier: Apache-2.0
#include "core/telemetry/http_endpoint.h"

#include <httplib.h>

#include <atomic>
#include <string>

#include "absl/status/status.h"
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
         .serving = [this] { return serving_.load(); }});
    EXPECT_TRUE(started.ok()) << started.status();
    return *std::move(started);
  }

  MetricRegistry registry_{{{"role", "test"}}};
  std::atomic<bool> serving_ = true;
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

TEST_F(HttpEndpointTest, APortInUseIsRefused) {
  const auto endpoint = Start("127.0.0.1:0");
  EXPECT_TRUE(absl::IsUnavailable(
      HttpEndpoint::Start({.listen = endpoint->address()}).status()));
}

}  // namespace
}  // namespace outrider
