// SPDX-License-Identifier: Apache-2.0
#include "core/testing/scheduler_test.h"

#include "core/testing/run_scheduler.h"

namespace outrider::testing {

Shares SchedulerTest::RunPass(Clock::duration time) {
  const Shares shares = BeginPass();
  if (!shares.empty()) EndPass(time);
  return shares;
}

Shares SchedulerTest::BeginPass() {
  const Pass* const pass = NextPass();
  FinishAll();
  if (pass == nullptr) return {};
  begun_.push_back(pass);
  Shares shares;
  for (const Pass::Part& part : pass->parts) {
    shares.emplace_back(NameOf(part), part.num_tokens);
  }
  return shares;
}

const Pass* SchedulerTest::NextPass() {
  scheduler_.Sweep(now_);
  BeginAll();
  return scheduler_.NextPass(now_);
}

void SchedulerTest::EndPass(Clock::duration time) {
  ASSERT_FALSE(begun_.empty());
  const Pass& pass = *begun_.front();
  begun_.pop_front();
  PassResults results;
  for (const Pass::Part& part : pass.parts) {
    const int name = NameOf(part);
    for (int i = 0; i < part.num_extensions; ++i) {
      const Extension& extension = pass.extensions[results.size()];
      num_rows_[name] += extension.num_rows;
      results.emplace_back(LogitRows::FromVector(
          std::vector<float>(extension.num_rows, name), /*vocab_size=*/1));
      if (extension.max_drawn > 0) {
        results.back() = LogitRows(/*rows=*/{}, /*vocab_size=*/1, drawn_);
      }
      if (results_.contains(name)) results.back() = results_[name];
    }
  }
  now_ += time;
  scheduler_.EndPass(std::move(results), now_);
  TakeAll();
}

void SchedulerTest::BeginAll() { BeginAdmitted(scheduler_, now_); }

void SchedulerTest::TakeAll() {
  while (auto job = scheduler_.NextToTake()) {
    job->Take();
    scheduler_.Taken(std::move(job), now_);
  }
  FinishAll();
}

}  // namespace outrider::testing
