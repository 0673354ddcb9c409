// SPDX-License-Identifier: Apache-2.0
#include "core/node/hang_watch.h"

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "core/testing/lost_lm.h"
#include "core/testing/scripted_work.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::LostLm;
using ::outrider::testing::ScriptedWork;

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
