// SPDX-License-Identifier: Apache-2.0
// The engine over a model that takes two passes at a time.
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "core/engine/node_engine.h"
#include "core/testing/scripted_work.h"
#include "core/testing/status_matchers.h"
#include "core/testing/table_lm.h"
#include "gtest/gtest.h"

namespace outrider {
namespace {

using ::outrider::testing::IsOk;
using ::outrider::testing::ScriptedWork;
using ::outrider::testing::StatusIs;
using ::outrider::testing::TableLm;

constexpr int kDeviceBlocks = 4096;

// What a test does as a pass is launched and as it is finished, by its number;
// both may throw.
struct DeviceHooks {
  std::function<void(int)> on_launch = [](int) {};
  std::function<absl::Status(int)> on_finish = [](int) {
    return absl::OkStatus();
  };
};

// Expects what CausalLm says of Launch and Finish.
class DeviceLm final : public CausalLm {
 public:
  explicit DeviceLm(DeviceHooks hooks) : hooks_(std::move(hooks)) {
    EXPECT_THAT(model_.AllocateKvBlocks(kDeviceBlocks), IsOk());
  }
  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int) override { return absl::OkStatus(); }
  const DeviceCounters* device_counters() const override { return &counters_; }
  int num_in_flight() const override { return 2; }

  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    const Alone alone(num_launching_);
    const int number = num_launched_++;
    EXPECT_LE(num_launched_ - num_finished_, 2);
    hooks_.on_launch(number);
    return std::make_unique<Pending>(*this, number, model_.Extend(batch));
  }

 private:
  // Nobody else does this meanwhile.
  class Alone {
   public:
    explicit Alone(std::atomic<int>& count) : count_(count) {
      EXPECT_EQ(count_.fetch_add(1), 0);
    }
    ~Alone() { --count_; }

   private:
    std::atomic<int>& count_;
  };

  class Pending final : public PendingPass {
   public:
    Pending(DeviceLm& model, int number, PassResults results)
        : model_(model), number_(number), results_(std::move(results)) {}

    PassResults Finish() override {
      const Alone alone(model_.num_finishing_);
      EXPECT_EQ(model_.num_finished_, number_);
      const absl::Status status = model_.hooks_.on_finish(number_);
      ++model_.num_finished_;
      if (status.ok()) return std::move(results_);
      return PassResults(results_.size(), status);
    }

   private:
    DeviceLm& model_;
    const int number_;
    PassResults results_;
  };

  const DeviceHooks hooks_;
  const DeviceCounters counters_;
  TableLm model_{
      {.table = [](auto) { return std::vector<float>(2); }, .vocab_size = 2}};
  std::atomic<int> num_launching_ = 0, num_finishing_ = 0;
  std::atomic<int> num_launched_ = 0, num_finished_ = 0;
};

class NodeEngineInFlightTest : public ::testing::Test {
 protected:
  // The engine has run one pass, number 0, and knows what passes take.
  void Start(DeviceHooks hooks, std::function<void()> on_lost = {},
             int prefill_chunk = 32) {
    engine_ = std::make_unique<NodeEngine>(
        std::make_unique<DeviceLm>(std::move(hooks)),
        NodeEngine::Options{
            .scheduling = {.prefill_chunk = prefill_chunk,
                           .max_hold = 0,
                           .sessions = {.num_blocks = kDeviceBlocks}},
            .on_lost = std::move(on_lost),
            // Only what is to wake a thread does.
            .expiry_period = std::chrono::hours(1)});
    EXPECT_THAT(Submit(1).get(), IsOk());
  }
  // An opening, whose end the future has.
  std::future<absl::Status> Submit(int num_tokens, int num_more = 0) {
    auto done = std::make_shared<std::promise<absl::Status>>();
    std::future<absl::Status> result = done->get_future();
    RequestHeader header = {.session = SessionId::Random(), .step = 1};
    header.delta.append_tokens = TokenSeq(num_tokens, 1);
    engine_->Submit(std::make_unique<ScriptedWork>(
        Work::Request{.header = header, .num_draft_tokens = num_more},
        ScriptedWork::Script{.num_more = num_more,
                             .on_finish = [done](const Ending& ending) {
                               done->set_value(ending.status);
                             }}));
    return result;
  }
  int64_t num_early() const { return engine_->metrics().num_launched_early; }

  std::unique_ptr<NodeEngine> engine_;
};

// Pass 1 ends once pass 2 was launched, in the hands of a test.
class SecondPassTest : public NodeEngineInFlightTest {
 protected:
  void Await(std::promise<void>& event) {
    EXPECT_EQ(event.get_future().wait_for(std::chrono::seconds(60)),
              std::future_status::ready);
  }
  DeviceHooks Hooks() {
    return {.on_launch =
                [this](int number) {
                  if (number == 1) first_launched_.set_value();
                  if (number == 2) second_launched_.set_value();
                },
            .on_finish =
                [this](int number) {
                  if (number == 1) Await(second_launched_);
                  return absl::OkStatus();
                }};
  }

  std::promise<void> first_launched_, second_launched_;
};

TEST_F(SecondPassTest, IsLaunchedForThoseWhoComeWhileTheFirstRuns) {
  Start(Hooks());
  std::future<absl::Status> first;
  // It runs its own pass, and awaits it.
  std::jthread caller([&] { first = Submit(1); });
  Await(first_launched_);
  EXPECT_THAT(Submit(1).get(), IsOk());
  caller.join();
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_EQ(num_early(), 1);
}

// A short prompt runs on the thread that submits it, which leaves once nothing
// is to be launched: its second pass, which another thread launched, is
// awaited.
TEST_F(SecondPassTest, IsAwaitedThoughWhoAwaitedTheFirstHasLeft) {
  DeviceHooks hooks = Hooks();
  hooks.on_finish = [this](int number) {
    if (number != 1) return absl::OkStatus();
    Await(second_launched_);
    // Meanwhile who launched it sees that the first one is awaited.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return absl::OkStatus();
  };
  Start(std::move(hooks), /*on_lost=*/{}, /*prefill_chunk=*/16);
  std::future<absl::Status> done = Submit(17);
  EXPECT_EQ(done.wait_for(std::chrono::seconds(10)), std::future_status::ready);
  EXPECT_EQ(num_early(), 1);
}

// Of its four passes each ends once the next one was launched.
TEST_F(SecondPassTest, IsLaunchedForTheRestOfAPromptThatIsAlone) {
  std::vector<std::promise<void>> launched(5);
  Start({.on_launch = [&](int number) { launched[number].set_value(); },
         .on_finish =
             [&](int number) {
               if (number >= 1 && number < 4) Await(launched[number + 1]);
               return absl::OkStatus();
             }});
  EXPECT_THAT(Submit(100).get(), IsOk());
  EXPECT_EQ(num_early(), 3);
}

TEST_F(SecondPassTest, BeginsOnceTheFirstHasEnded) {
  DeviceHooks hooks = Hooks();
  std::chrono::steady_clock::time_point first, second;
  hooks.on_finish = [&](int number) {
    if (number == 1) {
      Await(second_launched_);
      first = engine_->pass_start().value();
    }
    if (number == 2) second = engine_->pass_start().value();
    return absl::OkStatus();
  };
  Start(hooks);
  EXPECT_THAT(Submit(100).get(), IsOk());
  EXPECT_LT(first, second);
  EXPECT_EQ(engine_->pass_start(), std::nullopt);
}

TEST_F(SecondPassTest, EndsItsWorkWhereTheFirstLostTheDeviceWhichIsToldOnce) {
  DeviceHooks hooks = Hooks();
  hooks.on_finish = [this](int number) -> absl::Status {
    if (number != 1) return absl::OkStatus();
    Await(second_launched_);
    return absl::UnavailableError("gone");
  };
  std::atomic<int> num_told = 0;
  Start(hooks, [&] { ++num_told; });
  EXPECT_THAT(Submit(100).get(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Submit(1).get(), StatusIs(absl::StatusCode::kUnavailable));
  engine_.reset();
  EXPECT_EQ(num_told, 1);
}

TEST_F(SecondPassTest, IsTheOneThatFailsWhereItsLaunchThrows) {
  DeviceHooks hooks = Hooks();
  hooks.on_launch = [this](int number) {
    if (number == 1) first_launched_.set_value();
    if (number != 2) return;
    second_launched_.set_value();
    throw std::bad_alloc();
  };
  hooks.on_finish = [this](int number) {
    if (number == 1) Await(second_launched_);
    return absl::OkStatus();
  };
  Start(hooks);
  std::future<absl::Status> first;
  std::jthread caller([&] { first = Submit(1); });
  Await(first_launched_);
  EXPECT_THAT(Submit(1).get(), StatusIs(absl::StatusCode::kInternal));
  caller.join();
  EXPECT_THAT(first.get(), IsOk());
}

TEST_F(SecondPassTest, EndsAPromptThatFailedInTheFirst) {
  DeviceHooks hooks = Hooks();
  hooks.on_finish = [this](int number) -> absl::Status {
    if (number != 1) return absl::OkStatus();
    Await(second_launched_);
    return absl::InternalError("of the first");
  };
  Start(hooks);
  EXPECT_THAT(Submit(100).get(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Submit(40).get(), IsOk());
}

TEST_F(NodeEngineInFlightTest, PassesEndInTheirOrderWhateverTheThreadsDo) {
  // Each time long enough for other threads to do what they may not.
  std::atomic<int> num_launched = 0;
  const auto wait_for_more_than = [&](int number) {
    const auto latest =
        std::chrono::steady_clock::now() + std::chrono::microseconds(200);
    while (num_launched == number &&
           std::chrono::steady_clock::now() < latest) {
      std::this_thread::yield();
    }
  };
  Start({.on_launch =
             [&](int number) {
               num_launched = number;
               wait_for_more_than(number);
             },
         .on_finish =
             [&](int number) {
               wait_for_more_than(number);
               return absl::OkStatus();
             }});
  {
    std::vector<std::jthread> callers;
    callers.reserve(4);
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([this] {
        for (int i = 0; i < 40; ++i) {
          const absl::Status status = Submit(1 + 7 * i % 150, i % 4).get();
          // Sessions are opened and never released: in the end there is no
          // room for more.
          EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status));
        }
      });
    }
  }
  EXPECT_GT(num_early(), 0);
}

TEST_F(NodeEngineInFlightTest, TheDestructorFinishesBothPasses) {
  Start({});
  std::vector<std::future<absl::Status>> all;
  all.reserve(4);
  for (int i = 0; i < 4; ++i) all.push_back(Submit(100));
  engine_.reset();
  for (auto& one : all) EXPECT_THAT(one.get(), IsOk());
}

}  // namespace
}  // namespace outrider
