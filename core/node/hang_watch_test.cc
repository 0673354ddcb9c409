// SPDX-License-Identifier: Apache-2.0
#include "core/node/hang_watch.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/node/serve_node.h"
#include "core/telemetry/metric_registry.h"
#include "core/testing/lost_lm.h"
#include "core/testing/no_service.h"
#include "core/testing/scripted_work.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::LostLm;
using ::outrider::testing::NoService;
using ::outrider::testing::ScriptedWork;
using ::outrider::testing::TableLm;

void SleepUntil(const std::function<bool()>& condition) {
  while (!condition()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

// A model whose pass is what a test says, and gives nothing.
class LmOfPass final : public CausalLm {
 public:
  explicit LmOfPass(std::function<void()> pass) : pass_(std::move(pass)) {}

  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int) override { return absl::OkStatus(); }
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    pass_();
    return std::make_unique<PassThatRan>(
        PassResults(batch.size(), absl::InternalError("it gives nothing")));
  }

 private:
  const LostLm model_;
  const std::function<void()> pass_;
};

// A device that runs two passes at a time. The second of all is lost once the
// third was launched, and that one hangs.
class HangsOnceLostLm final : public CausalLm {
 public:
  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int num_blocks) override {
    return model_.AllocateKvBlocks(num_blocks);
  }
  const DeviceCounters* device_counters() const override { return &counters_; }
  int num_in_flight() const override { return 2; }
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    return std::make_unique<Pending>(*this, num_launched_++,
                                     model_.Extend(batch));
  }
  int num_launched() const { return num_launched_; }

 private:
  class Pending final : public PendingPass {
   public:
    Pending(const HangsOnceLostLm& model, int number, PassResults results)
        : model_(model), number_(number), results_(std::move(results)) {}
    PassResults Finish() override {
      if (number_ == 0) return std::move(results_);
      if (number_ == 2) {
        std::this_thread::sleep_for(std::chrono::seconds(20));
        std::_Exit(0);  // nobody has ended it
      }
      SleepUntil([this] { return model_.num_launched() > 2; });
      return PassResults(results_.size(), absl::UnavailableError("lost"));
    }

   private:
    const HangsOnceLostLm& model_;
    const int number_;
    PassResults results_;
  };

  const DeviceCounters counters_ = {};
  TableLm model_{
      {.table = [](auto) { return std::vector<float>(2); }, .vocab_size = 2}};
  std::atomic<int> num_launched_ = 0;
};

// Serves until its device is lost, with another pass under way, and ends.
// `on_loss` runs beside that, once it is lost.
void ServeALostNode(
    std::chrono::seconds max_pass,
    const std::function<void()>& on_loss = [] {}) {
  RpcServer::BlockTerminationSignals();
  auto model = std::make_unique<HangsOnceLostLm>();
  const HangsOnceLostLm& passes = *model;
  EXPECT_THAT(model->AllocateKvBlocks(16), IsOk());
  Node node(std::move(model), {.max_hold = 0, .sessions = {.num_blocks = 16}},
            {.model_name = "m"});
  const ServerFlags flags = {.rpc = {.listen = "127.0.0.1:0"}};
  const auto submit = [&node](std::function<void()> on_finish) {
    RequestHeader header = {.session = SessionId::Random(), .step = 1};
    header.delta.append_tokens = {1};
    node.engine().Submit(std::make_unique<ScriptedWork>(
        Work::Request{.header = header},
        ScriptedWork::Script{
            .on_finish = [on_finish](const Ending&) { on_finish(); }}));
  };
  std::promise<void> has_run;  // and the engine knows what passes take
  submit([&] { has_run.set_value(); });
  has_run.get_future().wait();
  // It runs its own pass, and awaits it.
  const std::jthread caller([&] { submit([] {}); });
  SleepUntil([&] { return passes.num_launched() > 1; });
  submit([] {});
  const std::jthread beside([&] {
    SleepUntil([&node] { return node.is_lost(); });
    on_loss();
  });
  NoService none;
  MetricRegistry metrics({});
  EXPECT_FALSE(ServeNode({.name = "a node",
                          .what = "a test",
                          .flags = flags,
                          .node = node,
                          .service = none,
                          .metrics = metrics,
                          .max_pass = max_pass})
                   .ok());
}

TEST(HangWatchDeathTest, ANodeThatLostItsDeviceEndsWhereAnotherPassHangs) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(ServeALostNode(std::chrono::seconds(1)),
              ::testing::ExitedWithCode(EXIT_FAILURE), "the device hangs");
}

TEST(HangWatchDeathTest, ANodeThatLostItsDeviceEndsAtASignalWhileAPassRuns) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto signal = [] {
    // The first comes when the node has long seen the loss.
    std::this_thread::sleep_for(std::chrono::seconds(1));
    while (kill(getpid(), SIGTERM) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  };
  EXPECT_EXIT(ServeALostNode(std::chrono::seconds(3600), signal),
              ::testing::KilledBySignal(SIGTERM), "");
}

class HangWatchTest : public ::testing::Test {
 protected:
  // Returns once the pass has run.
  void RunPass() {
    RequestHeader header = {.session = SessionId::Random(), .step = 1};
    header.delta.append_tokens = {1};
    node_.engine().Submit(std::make_unique<ScriptedWork>(
        Work::Request{.header = header}, ScriptedWork::Script{}));
    SleepUntil([this] { return has_run_.load(); });
  }

  std::function<void()> pass_ = {};  // what the pass does
  std::atomic<bool> has_run_ = false;
  Node node_{std::make_unique<LmOfPass>([this] {
               pass_();
               has_run_ = true;
             }),
             {.sessions = {.num_blocks = 4}},
             {.model_name = "m"}};
  CallQueue queue_{1};
  const std::unique_ptr<RpcServer> server_ =
      RpcServer::Start({.listen = "127.0.0.1:0"}, {&node_.cache_service()},
                       queue_)
          .value();
};

TEST_F(HangWatchTest, APassThatEndsWhileHealthIsToldLeavesTheNodeServing) {
  pass_ = [this] { SleepUntil([this] { return !server_->serving(); }); };
  server_->SetServing(true);
  const HangWatch watch(node_, *server_, std::chrono::seconds(1));
  RunPass();
  SleepUntil([this] { return server_->serving(); });
}

TEST_F(HangWatchTest, ANodeThatDrainsDoesNotServeAgain) {
  pass_ = [this] {
    SleepUntil([this] { return !server_->serving(); });
    node_.counters().draining = true;
  };
  server_->SetServing(true);
  {
    const HangWatch watch(node_, *server_, std::chrono::seconds(1));
    RunPass();
  }  // which waits for what the watch is at
  EXPECT_FALSE(server_->serving());
}

}  // namespace
}  // namespace outrider
