// SPDX-License-Identifier: Apache-2.0
#include "core/node/node.h"

#include <memory>
#include <utility>
#include <vector>

#include "core/node/serve_node.h"
#include "core/telemetry/metric_registry.h"
#include "core/testing/scripted_work.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::ScriptedWork;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;
using ::testing::HasSubstr;

constexpr int kNumBlocks = 4;

// A model whose device is lost at the first pass.
class LostLm final : public CausalLm {
 public:
  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int) override { return absl::OkStatus(); }
  std::vector<absl::StatusOr<LogitRows>> Extend(
      absl::Span<const Extension> batch) override {
    return std::vector<absl::StatusOr<LogitRows>>(
        batch.size(), absl::UnavailableError("the device is gone"));
  }

 private:
  const TableLm model_{
      {.table = [](auto) { return std::vector<float>(2); }, .vocab_size = 2}};
};

class NoService final : public RpcService {
 public:
  std::vector<RpcMethod> Methods() override { return {}; }
};

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
  const MetricRegistry metrics{{}};
  const ServerFlags flags = {.rpc = {.listen = "127.0.0.1:0"}};
  EXPECT_THAT(ServeNode({.name = "a node",
                         .what = "a test",
                         .flags = flags,
                         .node = node,
                         .service = none,
                         .metrics = metrics}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("lost")));
}

}  // namespace
}  // namespace outrider
