// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SCRIPTED_WORK_H_
#define OUTRIDER_CORE_TESTING_SCRIPTED_WORK_H_

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/work.h"

namespace outrider::testing {

// Work that wants the tokens of its delta and then, so many times, one more.
class ScriptedWork final : public Work {
 public:
  struct Script {
    int num_rows = 1;  // of the first extension
    int num_more = 0;  // extensions of one token after it
    std::function<void(const LogitRows&)> on_take = {};  // may throw
    std::function<void(const Ending&)> on_finish = {};
  };

  ScriptedWork(Request request, Script script)
      : Work(std::move(request)), script_(std::move(script)) {}

  Want Begin(const NodeSession& /*session*/) override {
    return {.tokens = request().header.delta.append_tokens,
            .num_rows = script_.num_rows,
            .is_last = script_.num_more == 0};
  }
  absl::StatusOr<std::optional<Want>> Take(
      absl::Span<const LogitRows> rows) override {
    if (script_.on_take) script_.on_take(rows[0]);
    if (script_.num_more-- <= 0) return std::nullopt;
    return Want{
        .tokens = one_, .num_rows = 1, .is_last = script_.num_more == 0};
  }
  void Finish(const Ending& ending) override {
    if (script_.on_finish) script_.on_finish(ending);
  }

 private:
  Script script_;
  const std::vector<TokenId> one_ = {1};
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SCRIPTED_WORK_H_
