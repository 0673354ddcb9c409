// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_SCRIPTED_WORK_H_
#define OUTRIDER_CORE_TESTING_SCRIPTED_WORK_H_

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "core/engine/work.h"

namespace outrider::testing {

// Work that wants the tokens of its delta and then, so many times, one more; or
// one more of each branch.
class ScriptedWork final : public Work {
 public:
  struct Script {
    int num_rows = 1;  // of the first extension
    int num_more = 0;  // extensions of one token after it
    bool is_ahead = false;
    bool holds_up_stream = false;
    bool is_doubtful = false;
    bool stays = false;    // as long as there is more
    int num_branches = 0;  // 0: the session's own text goes on
    // The model may go on: of what it drew so many tokens are kept, and the
    // work goes on after them.
    int max_drawn = 0;
    int num_kept = 0;
    std::function<void()> on_begin = {};                 // may throw
    std::function<void(const LogitRows&)> on_take = {};  // the same
    std::function<void(const Ending&)> on_finish = {};
  };

  ScriptedWork(Request request, Script script)
      : Work(std::move(request)), script_(std::move(script)) {}

  Want Begin(const NodeSession& session) override {
    if (script_.on_begin) script_.on_begin();
    session_ = &session;
    return {.tokens = request().header.delta.append_tokens,
            .num_rows = script_.num_rows,
            .is_last = script_.num_more == 0,
            .stays = script_.stays && script_.num_more > 0,
            .max_drawn = script_.max_drawn};
  }
  absl::StatusOr<std::optional<Want>> Take(
      absl::Span<const LogitRows> rows) override {
    if (script_.on_take) script_.on_take(rows[0]);
    if (script_.num_more-- <= 0) return std::nullopt;
    if (script_.num_branches > 0) return Branches(rows.size());
    Want want = {.tokens = one_,
                 .num_rows = 1,
                 .is_last = script_.num_more == 0,
                 .stays = script_.stays && script_.num_more > 0};
    const auto num_drawn = static_cast<int>(rows[0].drawn().size());
    if (num_drawn > script_.num_kept) {
      want.keep_length = session_->log.length() - num_drawn + script_.num_kept;
    }
    return want;
  }
  void Finish(const Ending& ending) override {
    if (script_.on_finish) script_.on_finish(ending);
  }
  bool is_doubtful() const override { return script_.is_doubtful; }

 private:
  Want Branches(size_t num_rows) {
    Want want = {.is_last = script_.num_more == 0};
    const int length = session_->log.length();
    const bool is_first = !std::exchange(has_forked_, true);
    if (!is_first) script_.num_branches = static_cast<int>(num_rows);
    for (int i = 0; i < script_.num_branches; ++i) {
      if (is_first)
        want.forks.push_back({length, length + script_.num_more + 1});
      want.branches.push_back({.branch = i, .token = 1});
    }
    return want;
  }

  const NodeSession* session_ = nullptr;
  bool has_forked_ = false;
  Script script_;
  const std::vector<TokenId> one_ = {1};
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_SCRIPTED_WORK_H_
