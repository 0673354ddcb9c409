// SPDX-License-Identifier: Apache-2.0
#include "core/testing/scheduler_test.h"

namespace outrider::testing {

Shares SchedulerTest::RunPass(Clock::duration time) {
  auto pass = scheduler_.NextPass(now_);
  FinishAll();
  if (!pass.has_value()) return {};
  Shares shares;
  PassResults results;
  for (const Pass::Part& part : pass->parts) {
    const int name = part.job->work->request().header.session.bytes[0];
    shares.emplace_back(name, part.num_tokens);
    for (int i = 0; i < part.num_extensions; ++i) {
      const int num_rows = pass->extensions[results.size()].num_rows;
      num_rows_[name] += num_rows;
      results.emplace_back(LogitRows::FromVector(
          std::vector<float>(num_rows, name), /*vocab_size=*/1));
      if (pass->extensions[results.size() - 1].max_drawn > 0) {
        results.back() = LogitRows(/*rows=*/{}, /*vocab_size=*/1, drawn_);
      }
      if (results_.contains(name)) results.back() = results_[name];
    }
  }
  now_ += time;
  scheduler_.EndPass(*std::move(pass), std::move(results), now_);
  TakeAll();
  return shares;
}

}  // namespace outrider::testing
