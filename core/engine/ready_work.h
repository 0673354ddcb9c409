// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_READY_WORK_H_
#define OUTRIDER_CORE_ENGINE_READY_WORK_H_

#include <array>
#include <cstddef>
#include <deque>
#include <memory>

#include "core/engine/job.h"
#include "core/engine/pass.h"
#include "core/engine/pass_time.h"

namespace outrider {

// Work that waits for a pass, and which of it is in the next one: running
// sessions first, in the order in which they came, so that none runs twice
// before all who waited have run (with rows of two passes at most, none is
// passed over twice in a row), then chunks of prompts. These have what running
// sessions leave of a budget of rows. Where that is less than a quarter of the
// rows, every second pass has a chunk of the whole budget nevertheless, or of a
// quarter of the rows of the two; a stream that has begun has it in every pass,
// before openings. Work ahead comes last: beside others as far as its rows cost
// these little or it was passed over four times, else by itself.
class ReadyWork {
 public:
  struct Options {
    int prefill_chunk = 128;  // the budget
    int max_rows = 1024;      // of a pass, but for its chunks of prompts
    double max_ahead = 0.5;   // of what a pass costs besides its rows
  };
  using Queue = std::deque<std::unique_ptr<Job>>;

  explicit ReadyWork(const Options& options) : options_(options) {}

  // Puts it where it waits, by what it wants.
  void Add(std::unique_ptr<Job> job);
  // Takes the next pass's work out. Not where nothing is ready.
  void Fill(Pass& pass, const PassTime& pass_time);

  bool empty() const { return IsAllAhead() && ahead_.empty(); }
  bool IsAllAhead() const { return running_.empty() && prompts_.empty(); }
  // One round's tokens, or as few of an opening.
  bool IsOneShortWork() const {
    return running_.size() == 1 ||
           (prompts_.size() == 1 && !prompts_.front()->is_long());
  }
  int num_running() const { return static_cast<int>(running_.size()); }
  bool AnybodyStays() const;  // of these
  // All but work ahead, which waits so that nobody else does.
  static size_t NumAwaited(const Queue& queue);
  size_t num_awaited() const { return running_.size() + NumAwaited(prompts_); }
  Queue& ahead() { return ahead_; }
  std::array<Queue*, 3> queues() { return {&running_, &prompts_, &ahead_}; }

 private:
  void AddRunning(Pass& pass);
  void AddChunks(Pass& pass);
  void AddAhead(Pass& pass, const PassTime& pass_time);

  const Options options_;
  Queue running_;  // a round's tokens each
  Queue prompts_;  // to be run in chunks
  Queue ahead_;
  int num_passed_over_ = 0;  // passes since one had the first work ahead
  bool last_had_chunk_ = false;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_READY_WORK_H_
