// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_PASSES_IN_FLIGHT_H_
#define OUTRIDER_CORE_ENGINE_PASSES_IN_FLIGHT_H_

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "core/base/check.h"
#include "core/engine/job.h"
#include "core/engine/pass.h"
#include "core/engine/pass_hold.h"
#include "core/engine/pass_time.h"

namespace outrider {

// The passes that a model was given and has not ended, in the order in which
// they began and end. A device runs one after the other, and would idle from
// the end of one to the launch of the next: where nobody is to be waited for,
// that is launched shortly before the end (docs/adr/0007), so that whoever
// comes until then is in it.
class PassesInFlight {
 public:
  using Clock = Job::Clock;

  explicit PassesInFlight(int most) : most_(most) {}

  bool empty() const { return passes_.empty(); }
  Pass& Begin(Clock::time_point now) {
    passes_.push_back(Pass::InMemoryOf(std::exchange(ended_, {}), now));
    return passes_.back();
  }
  // The first of them, which can be read until one begins or ends.
  Pass& End(Clock::time_point now) {
    OUTRIDER_CHECK(!passes_.empty()) << "no pass runs";
    ended_ = std::move(passes_.front());
    passes_.pop_front();
    if (!passes_.empty()) passes_.front().start = now;
    return ended_;
  }
  // Prompts of which the last pass has a chunk, and no pass the rest.
  // `may_go_on` says for which the next pass may have more, though that chunk
  // runs: it needs its keys, which come in time, and no row. Whoever takes such
  // a job has it.
  bool HasPrompt(absl::FunctionRef<bool(const Job&)> may_go_on) const {
    return !empty() && std::any_of(last().parts.begin(), last().parts.end(),
                                   [&](const auto& part) {
                                     return IsUnfinished(part) &&
                                            may_go_on(*part.owner);
                                   });
  }
  std::vector<std::unique_ptr<Job>> TakePrompts(
      absl::FunctionRef<bool(const Job&)> may_go_on) {
    std::vector<std::unique_ptr<Job>> prompts;
    if (empty()) return prompts;
    for (Pass::Part& part : passes_.back().parts) {
      if (IsUnfinished(part) && may_go_on(*part.owner)) {
        prompts.push_back(std::move(part.owner));
      }
    }
    return prompts;
  }

  // When the first of them began.
  std::optional<Clock::time_point> start() const {
    if (empty()) return std::nullopt;
    return passes_.front().start;
  }

  // What the host took to launch the last one.
  void set_launch_time(Clock::duration time) { launch_time_ = time; }
  // When another one may be launched, at the earliest, while these run;
  // nothing: not before one has ended.
  std::optional<Clock::time_point> next_launch(const PassTime& pass_time,
                                               const PassHold& hold) const {
    const auto num_passes = static_cast<int>(passes_.size());
    if (empty() || num_passes >= most_) return std::nullopt;
    const auto time = pass_time.Of(last().num_rows);
    const auto is_awaited = [&](const Pass::Part& part) {
      return IsAwaited(*part.job, pass_time, hold);
    };
    if (!time.has_value() ||
        std::any_of(last().parts.begin(), last().parts.end(), is_awaited)) {
      return std::nullopt;
    }
    // One that awaited steps of its own took longer than the next one will.
    const Clock::duration launch =
        std::min<Clock::duration>(launch_time_, pass_time.Fixed());
    return last().start + *time - launch;
  }

 private:
  const Pass& last() const { return passes_.back(); }
  static bool IsUnfinished(const Pass::Part& part) {
    return part.owner != nullptr && part.owner->num_left() > 0;
  }
  // Whether the next pass is for its next rows, or might be held for its
  // session, or nobody can tell how long its steps take.
  static bool IsAwaited(const Job& job, const PassTime& pass_time,
                        const PassHold& hold) {
    const bool has_only_a_chunk = job.num_left() > 0;
    return !has_only_a_chunk &&
           (!job.want.is_last || job.want.max_drawn > 0 ||
            hold.WouldHold(job.session->usual_return, pass_time));
  }

  const int most_;
  std::deque<Pass> passes_;
  Pass ended_ = {};
  Clock::duration launch_time_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_PASSES_IN_FLIGHT_H_
