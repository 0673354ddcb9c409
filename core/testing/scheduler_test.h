// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SCHEDULER_TEST_H_
#define OUTRIDER_CORE_TESTING_SCHEDULER_TEST_H_

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/engine/batch_scheduler.h"
#include "core/testing/named_session.h"
#include "core/testing/scripted_work.h"
#include "gtest/gtest.h"

namespace outrider::testing {

// Whose tokens are in a pass, and how many.
using Shares = std::vector<std::pair<int, int>>;

class SchedulerTest : public ::testing::Test {
 protected:
  using Clock = BatchScheduler::Clock;
  using Script = ScriptedWork::Script;

  // Nobody is waited for, but where a test is about that.
  explicit SchedulerTest(
      BatchScheduler::Options options = {.prefill_chunk = 32,
                                         .max_hold = 0,
                                         .sessions = {.num_blocks = 200}})
      : scheduler_(options) {}

  // A call of the session: an opening, or what follows on what it has cached.
  RequestHeader Header(int name, int num_tokens) {
    RequestHeader header = {
        .session = Id(name), .step = ++step_, .cache_salt = salt_};
    header.delta.append_tokens = TokenSeq(num_tokens, 1);
    if (const NodeSession* session = scheduler_.sessions().Find(Id(name))) {
      header.incarnation = session->incarnation;
      header.delta.keep_length = session->log.length();
    }
    return header;
  }
  void Submit(int name, int num_tokens = 1, Script script = {}) {
    const RequestHeader header = Header(name, num_tokens);
    Submit(header, std::move(script));
  }
  void Submit(const RequestHeader& header, Script script = {}) {
    const int name = header.session.bytes[0];
    const int num_draft_tokens = script.num_branches > 0 ? 0 : script.num_more;
    const bool is_ahead = script.is_ahead;
    const bool holds_up_stream = script.holds_up_stream;
    script.on_finish = [this, name](const Ending& ending) {
      ++num_finished_;
      endings_.insert_or_assign(name, ending);
    };
    scheduler_.Submit(std::make_unique<ScriptedWork>(
                          Work::Request{.header = header,
                                        .num_draft_tokens = num_draft_tokens,
                                        .is_cancelled =
                                            [this, name] {
                                              ++num_polls_;
                                              return cancelled_.contains(name);
                                            },
                                        .is_ahead = is_ahead,
                                        .holds_up_stream = holds_up_stream},
                          std::move(script)),
                      now_);
    BeginAll();
    FinishAll();
  }
  // Opens the sessions, each with one token.
  void OpenAll(std::vector<int> names) {
    for (const int name : names) Submit(name);
    while (!RunPass().empty()) {
    }
    endings_.clear();
  }

  // One pass that takes so long, and what its rows lead to. Empty: no pass.
  Shares RunPass(Clock::duration time = std::chrono::milliseconds(100));
  // Its halves: the end is that of the pass that began first.
  Shares BeginPass();
  const Pass* NextPass();  // the scheduler's, with all that may be in it
  void EndPass(Clock::duration time = std::chrono::milliseconds(100));
  virtual void BeginAll();
  void TakeAll();
  void FinishAll() {
    while (const auto job = scheduler_.NextEnded()) job->Finish();
    ASSERT_TRUE(scheduler_.sessions().IsConsistent());
  }
  absl::Status StatusOf(int name) const {
    return endings_.contains(name) ? endings_.at(name).status
                                   : absl::UnknownError("has not ended");
  }

  static int NameOf(const Pass::Part& part) {
    return part.job->work->request().header.session.bytes[0];
  }

  Clock::time_point now_ = {};
  BatchScheduler scheduler_;
  uint64_t step_ = 0;
  std::string salt_;  // of the sessions opened from here on
  std::map<int, Ending> endings_;
  std::map<int, int> num_rows_;          // wanted so far
  std::map<int, absl::Status> results_;  // of extensions that are to fail
  std::set<int> cancelled_;
  std::vector<TokenId> drawn_;  // by the model, where it may
  std::deque<const Pass*> begun_;
  int num_finished_ = 0;  // pieces of work
  int num_polls_ = 0;     // whether a caller has gone
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SCHEDULER_TEST_H_
