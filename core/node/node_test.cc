// SPDX-License-Identifier: Apache-2.0
#include "core/node/node.h"

#include <memory>
#include <utility>

#include "core/base/node_drains.h"
#include "core/node/serve_node.h"
#include "core/telemetry/metric_registry.h"
#include "core/testing/lost_lm.h"
#include "core/testing/no_service.h"
#include "core/testing/scripted_work.h"
#include "core/testing/status_matchers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::LostLm;
using ::outrider::testing::NoService;
using ::outrider::testing::ScriptedWork;
using ::outrider::testing::StatusIs;
using ::testing::HasSubstr;

constexpr int kNumBlocks = 4;

TEST(NodeTest, OneThatLostItsDeviceSaysSoAndIsServedNoLonger) {
  Node node(std::make_unique<LostLm>(),
            {.sessions = {.num_blocks = kNumBlocks}}, {.model_name = "m"});
  v1::NodeDescription description;
  EXPECT_THAT(node.Describe(description), IsOk());
  EXPECT_FALSE(node.is_lost());

  absl::Status ending;
  RequestHeader header = {.session = SessionId::Random(), .step = 1};
  header.delta.append_tokens = {1};
  node.engine().Submit(std::make_unique<ScriptedWork>(
      Work::Request{.header = header},
      ScriptedWork::Script{
          .on_finish = [&ending](const Ending& e) { ending = e.status; }}));
  EXPECT_THAT(ending, StatusIs(absl::StatusCode::kUnavailable));
  // So coordinators bring no sessions, and whoever looks after processes
  // starts another one.
  EXPECT_THAT(node.Describe(description),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("device")));
  NoService none;
  MetricRegistry metrics{{}};
  const ServerFlags flags = {.rpc = {.listen = "127.0.0.1:0"}};
  EXPECT_THAT(ServeNode({.name = "a node",
                         .what = "a test",
                         .flags = flags,
                         .node = node,
                         .service = none,
                         .metrics = metrics}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost")));
}

TEST(NodeTest, OneThatDrainsSaysSo) {
  Node node(std::make_unique<LostLm>(),
            {.sessions = {.num_blocks = kNumBlocks}}, {.model_name = "m"});
  node.counters().draining = true;
  v1::NodeDescription description;
  EXPECT_TRUE(IsNodeDrains(node.Describe(description)));
}

}  // namespace
}  // namespace outrider
