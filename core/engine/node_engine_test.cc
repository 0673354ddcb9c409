// SPDX-License-Identifier: Apache-2.0
#include "core/engine/node_engine.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "core/model/no_model.h"
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

constexpr int kNumBlocks = 64;

// A TableLm that does something before each pass; on a device of its own, or
// on none.
class HookedLm final : public CausalLm {
 public:
  using Hook = std::function<absl::Status(absl::Span<const Extension>)>;

  HookedLm(Hook hook, const DeviceCounters* device)
      : hook_(std::move(hook)), device_(device) {
    EXPECT_THAT(model_.AllocateKvBlocks(kNumBlocks), IsOk());
  }
  const ModelInfo& info() const override { return model_.info(); }
  int64_t AvailableKvBytes() const override { return 0; }
  absl::Status AllocateKvBlocks(int) override { return absl::OkStatus(); }
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override {
    const absl::Status status = hook_(batch);
    if (status.ok()) return model_.Launch(batch);
    return std::make_unique<PassThatRan>(PassResults(batch.size(), status));
  }
  const DeviceCounters* device_counters() const override { return device_; }

 private:
  const Hook hook_;
  const DeviceCounters* const device_;
  TableLm model_{
      {.table = [](auto) { return std::vector<float>(2); }, .vocab_size = 2}};
};

class NodeEngineTest : public ::testing::Test {
 protected:
  void Start(HookedLm::Hook hook, std::function<void()> on_lost = {},
             const DeviceCounters* device = nullptr) {
    engine_ = std::make_unique<NodeEngine>(
        std::make_unique<HookedLm>(std::move(hook), device),
        NodeEngine::Options{
            .scheduling = {.prefill_chunk = 32,
                           .sessions = {.num_blocks = kNumBlocks}},
            .on_lost = std::move(on_lost)});
  }
  // An opening, whose end the future has.
  std::future<absl::Status> Submit(int num_tokens,
                                   ScriptedWork::Script script = {}) {
    return Submit(SessionId::Random(), 1, num_tokens, std::move(script));
  }
  std::future<absl::Status> Submit(const SessionId& session, uint64_t step,
                                   int num_tokens,
                                   ScriptedWork::Script script = {}) {
    auto done = std::make_shared<std::promise<absl::Status>>();
    script.on_finish =
        [done, also = std::move(script.on_finish)](const Ending& ending) {
          if (also) also(ending);
          done->set_value(ending.status);
        };
    RequestHeader header = {.session = session, .step = step};
    header.delta.append_tokens = TokenSeq(num_tokens, 1);
    std::future<absl::Status> result = done->get_future();
    engine_->Submit(std::make_unique<ScriptedWork>(
        Work::Request{.header = header,
                      .num_draft_tokens = script.num_more,
                      .is_ahead = script.is_ahead},
        std::move(script)));
    return result;
  }

  std::unique_ptr<NodeEngine> engine_;
};

TEST_F(NodeEngineTest, APassHasAStartWhileItRuns) {
  std::vector<bool> has_start;
  Start([&](auto) {
    has_start.push_back(engine_->pass_start().has_value());
    EXPECT_LE(engine_->pass_start(), std::chrono::steady_clock::now());
    return absl::OkStatus();
  });
  EXPECT_FALSE(engine_->pass_start().has_value());
  EXPECT_THAT(Submit(1, {.num_more = 2}).get(), IsOk());
  EXPECT_EQ(has_start, std::vector<bool>(3, true));
  EXPECT_FALSE(engine_->pass_start().has_value());
}

TEST_F(NodeEngineTest, TextsThatAreAllTheMemoryThereIsAreNoMoreThanFit) {
  engine_ = std::make_unique<NodeEngine>(
      std::make_unique<NoModel>(ModelInfo{.vocab_size = 2}),
      NodeEngine::Options{
          .scheduling = {
              .sessions = {.num_blocks = 12, .sharing = PrefixSharing::kAll}}});
  EXPECT_THAT(Submit(100, {.num_rows = 0}).get(), IsOk());
  EXPECT_THAT(Submit(100, {.num_rows = 0}).get(),
              StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(Submit(90, {.num_rows = 0}).get(), IsOk());
}

TEST_F(NodeEngineTest, OneDecodeIsRunOnTheThreadThatSubmitsIt) {
  std::vector<std::thread::id> threads;
  Start([&](auto) {
    threads.push_back(std::this_thread::get_id());
    return absl::OkStatus();
  });
  auto done = Submit(1, {.num_more = 2});
  EXPECT_EQ(done.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  EXPECT_THAT(done.get(), IsOk());
  EXPECT_EQ(threads,
            std::vector<std::thread::id>(3, std::this_thread::get_id()));
}

TEST_F(NodeEngineTest, AChunkNeverIs) {
  std::atomic<bool> on_this = false;
  const auto here = std::this_thread::get_id();
  Start([&](absl::Span<const Extension> batch) {
    on_this = on_this ||
              (batch[0].num_rows == 0 && std::this_thread::get_id() == here);
    return absl::OkStatus();
  });
  EXPECT_THAT(Submit(100).get(), IsOk());
  EXPECT_FALSE(on_this);
}

// That thread has to take in what ends it.
TEST_F(NodeEngineTest, WorkAheadNeverIsAndANewerStepEndsIt) {
  std::atomic<bool> on_this = false;
  std::promise<void> second_began;
  std::promise<void> newer_came;
  const auto here = std::this_thread::get_id();
  int num_passes = 0;
  Start([&](auto) {
    if (++num_passes == 2) {
      on_this = std::this_thread::get_id() == here;
      second_began.set_value();
      newer_came.get_future().wait();
    }
    return absl::OkStatus();
  });
  const SessionId session = SessionId::Random();
  auto ahead = Submit(session, 1, 1, {.num_more = 9, .is_ahead = true});
  second_began.get_future().wait();
  auto newer = Submit(session, 2, 1);
  newer_came.set_value();
  EXPECT_THAT(ahead.get(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(newer.get(), IsOk());
  EXPECT_FALSE(on_this);
  EXPECT_EQ(num_passes, 3);
}

TEST_F(NodeEngineTest, PassesNeverRunAtTheSameTimeAndAllWorkEnds) {
  std::atomic<int> num_running = 0;
  Start([&](auto) {
    EXPECT_EQ(num_running.fetch_add(1), 0);
    num_running.fetch_sub(1);
    return absl::OkStatus();
  });
  std::atomic<int> num_taken = 0;
  {
    std::vector<std::jthread> callers;
    for (int caller = 0; caller < 4; ++caller) {
      callers.emplace_back([&] {
        for (int i = 0; i < 100; ++i) {
          const absl::Status status =
              Submit(1 + i % 50, {.num_more = i % 4,
                                  .on_take = [&](auto&) { ++num_taken; }})
                  .get();
          // Sessions are opened and never released: in the end there is no
          // room for more.
          EXPECT_TRUE(status.ok() || absl::IsResourceExhausted(status));
        }
      });
    }
  }
  EXPECT_GT(num_taken, 20);
}

// An exception out of a job left the model marked busy for ever.
TEST_F(NodeEngineTest, AnExceptionOutOfAPassFailsItsWorkAndNoOther) {
  bool throws = true;
  Start([&](auto) -> absl::Status {
    if (std::exchange(throws, false)) throw std::bad_alloc();
    return absl::OkStatus();
  });
  EXPECT_THAT(Submit(1).get(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Submit(1).get(), IsOk());
  throws = true;
  EXPECT_THAT(Submit(100).get(), StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Submit(100).get(), IsOk());
}

TEST_F(NodeEngineTest, AnExceptionWhileRowsAreTakenLeavesTheModelFree) {
  Start([](auto) { return absl::OkStatus(); });
  EXPECT_THAT(
      Submit(1, {.on_take = [](auto&) { throw std::bad_alloc(); }}).get(),
      StatusIs(absl::StatusCode::kInternal));
  EXPECT_THAT(Submit(1).get(), IsOk());
}

// To prepare questions about rows may take as long as a small pass.
TEST_F(NodeEngineTest, OthersAreServedWhileWorkBegins) {
  Start([](auto) { return absl::OkStatus(); });
  std::promise<void> begins, other_ended;
  std::future<absl::Status> first;
  std::thread caller([&] {
    first = Submit(
        1, {.on_begin = [&] {
          begins.set_value();
          EXPECT_EQ(other_ended.get_future().wait_for(std::chrono::seconds(20)),
                    std::future_status::ready);
        }});
  });
  begins.get_future().wait();
  EXPECT_THAT(Submit(1).get(), IsOk());
  other_ended.set_value();
  caller.join();
  EXPECT_THAT(first.get(), IsOk());
}

TEST_F(NodeEngineTest, RowsAreTakenBesideTheNextPass) {
  std::promise<void> second_began;
  std::promise<void> first_taken;
  int num_passes = 0;
  Start([&](auto) {
    if (++num_passes == 2) {
      second_began.set_value();
      first_taken.get_future().wait();
    }
    return absl::OkStatus();
  });
  // A chunk, so that both are run by the engine's own threads.
  auto first = Submit(20, {.on_take = [&](auto&) {
                        second_began.get_future().wait();
                        first_taken.set_value();
                      }});
  auto second = Submit(60);
  EXPECT_THAT(first.get(), IsOk());
  EXPECT_THAT(second.get(), IsOk());
}

// The thread that comes out of a pass answers whoever that failed for, or runs
// the next one, for which work has come meanwhile, and leaves the answer to
// another thread.
class NextPassTest : public NodeEngineTest {
 protected:
  // Whether the next pass went first.
  bool GoesFirst(const DeviceCounters* device) {
    std::promise<void> began, others_came, answered;
    const std::shared_future<void> has_answered = answered.get_future();
    std::thread::id first_pass, answer;
    int num_passes = 0;
    Start(
        [&](auto) -> absl::Status {
          if (++num_passes > 1) {
            has_answered.wait();
            return absl::OkStatus();
          }
          first_pass = std::this_thread::get_id();
          began.set_value();
          others_came.get_future().wait();
          return absl::InternalError("of this pass");
        },
        /*on_lost=*/{}, device);
    // A chunk, so that the engine's own threads run both.
    auto first = Submit(20, {.on_finish = [&](const Ending&) {
                          answer = std::this_thread::get_id();
                          answered.set_value();
                        }});
    began.get_future().wait();
    auto second = Submit(20);
    others_came.set_value();
    EXPECT_THAT(first.get(), StatusIs(absl::StatusCode::kInternal));
    EXPECT_THAT(second.get(), IsOk());
    return answer != first_pass;
  }
};

TEST_F(NextPassTest, RepliesGoBeforeItWhereItTakesTheirCores) {
  EXPECT_FALSE(GoesFirst(/*device=*/nullptr));
}

TEST_F(NextPassTest, ItGoesBeforeRepliesOnADeviceOfItsOwn) {
  const DeviceCounters device;
  EXPECT_TRUE(GoesFirst(&device));
}

TEST_F(NodeEngineTest, ALostDeviceIsToldOnceAndEndsAllWork) {
  std::atomic<int> num_told = 0;
  Start([](auto) { return absl::UnavailableError("gone"); },
        [&] { ++num_told; });
  EXPECT_THAT(Submit(1).get(), StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_THAT(Submit(100).get(), StatusIs(absl::StatusCode::kUnavailable));
  engine_.reset();
  EXPECT_EQ(num_told, 1);
}

TEST_F(NodeEngineTest, TheDestructorFinishesWhatWasSubmitted) {
  Start([](auto) { return absl::OkStatus(); });
  std::vector<std::future<absl::Status>> all;
  for (int i = 0; i < 4; ++i) all.push_back(Submit(100));
  engine_.reset();
  for (auto& one : all) EXPECT_THAT(one.get(), IsOk());
}

}  // namespace
}  // namespace outrider
