// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/request_reads.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/retry_delay.h"

namespace outrider {
namespace {

constexpr char kTooSlow[] =
    "the request was not here whole in time, while others wait to be read";
constexpr char kTooMany[] = "too many requests wait to be read";
constexpr char kTooLong[] = "the request took too long to come";

}  // namespace

bool RequestReads::Enter(Reader& reader) {
  MutexLock lock(mu_);
  if (waiting_.empty() && reads_.size() < limits_.most_reads) {
    Add(reader, State::kReads);
  } else {
    Add(reader, State::kWaits);
    Settle();
    if (waiting_.size() > limits_.most_waiting) {
      RefuseOldest(waiting_, kTooMany);
    }
  }
  return !std::exchange(ticks_, true);
}

bool RequestReads::Leave(Reader& reader) {
  MutexLock lock(mu_);
  if (reader.state_ != State::kReads) return false;
  reader.state_ = State::kOut;
  reads_.erase(reader.place_);
  Settle();
  return true;
}

bool RequestReads::Tick() {
  MutexLock lock(mu_);
  ++now_;
  while (!reads_.empty() && now_ - reads_.front().since >= limits_.longest) {
    RefuseOldest(reads_, kTooLong);
  }
  Settle();
  ticks_ = !reads_.empty() || !waiting_.empty();
  return ticks_;
}

void RequestReads::Add(Reader& reader, State state) {
  Entries& entries = state == State::kReads ? reads_ : waiting_;
  entries.push_back({.reader = &reader, .since = now_});
  reader.state_ = state;
  reader.place_ = std::prev(entries.end());
  if (state == State::kReads) reader.BeginRead();
}

void RequestReads::RefuseOldest(Entries& entries, const char* why) {
  Reader& reader = *entries.front().reader;
  entries.pop_front();
  reader.state_ = State::kOut;
  // Spread, so that those who were refused together do not come back together.
  std::uniform_int_distribution<int> delay(1000, 1500);
  reader.Refuse(WithRetryDelay(absl::ResourceExhaustedError(why),
                               std::chrono::milliseconds(delay(jitter_))));
}

int64_t RequestReads::Patience() const {
  const auto num_waiting = static_cast<int64_t>(waiting_.size());
  const int64_t times =
      (num_waiting + limits_.few_waiting - 1) / limits_.few_waiting;
  return std::max(limits_.patience / times, limits_.least_patience);
}

// Those who wait take the places that there are, and those of who stalls.
void RequestReads::Settle() {
  while (!waiting_.empty()) {
    if (reads_.size() >= limits_.most_reads) {
      if (now_ - reads_.front().since < Patience()) return;
      RefuseOldest(reads_, kTooSlow);
    }
    Reader& next = *waiting_.front().reader;
    waiting_.pop_front();
    Add(next, State::kReads);
  }
}

}  // namespace outrider
