// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/request_reads.h"

#include <iterator>
#include <utility>

#include "core/base/retry_delay.h"

namespace outrider {
namespace {

constexpr char kOthersWait[] =
    "the request was not here whole, and others wait to be read";
constexpr char kTooLong[] = "the request took too long to come";

}  // namespace

bool RequestReads::Enter(Reader& reader, Clock::time_point now) {
  MutexLock lock(mu_);
  if (waiting_.empty() && reads_.size() < limits_.most_reads) {
    Add(reader, now, State::kReads);
  } else {
    Add(reader, now, State::kWaits);
    Settle(now);
    if (waiting_.size() > limits_.most_waiting) {
      RefuseOldest(waiting_, kOthersWait);
    }
  }
  return !std::exchange(ticks_, true);
}

bool RequestReads::Leave(Reader& reader, Clock::time_point now) {
  MutexLock lock(mu_);
  if (reader.state_ != State::kReads) return false;
  reader.state_ = State::kOut;
  reads_.erase(reader.place_);
  Settle(now);
  return true;
}

bool RequestReads::Tick(Clock::time_point now) {
  MutexLock lock(mu_);
  RefuseOlderThan(limits_.longest, now, reads_);
  RefuseOlderThan(limits_.longest, now, waiting_);
  Settle(now);
  ticks_ = !reads_.empty() || !waiting_.empty();
  return ticks_;
}

void RequestReads::Add(Reader& reader, Clock::time_point now, State state) {
  Entries& entries = state == State::kReads ? reads_ : waiting_;
  entries.push_back({.reader = &reader, .since = now});
  reader.state_ = state;
  reader.place_ = std::prev(entries.end());
  if (state == State::kReads) reader.BeginRead();
}

void RequestReads::RefuseOldest(Entries& entries, const char* why) {
  Reader& reader = *entries.front().reader;
  entries.pop_front();
  reader.state_ = State::kOut;
  reader.Refuse(WithRetryDelay(absl::ResourceExhaustedError(why),
                               std::chrono::seconds(1)));
}

void RequestReads::RefuseOlderThan(std::chrono::milliseconds age,
                                   Clock::time_point now, Entries& entries) {
  while (!entries.empty() && now - entries.front().since > age) {
    RefuseOldest(entries, kTooLong);
  }
}

// Those who wait take the places that there are, and those of who stalls.
void RequestReads::Settle(Clock::time_point now) {
  while (!waiting_.empty()) {
    if (reads_.size() >= limits_.most_reads) {
      if (now - reads_.front().since <= limits_.patience) return;
      RefuseOldest(reads_, kOthersWait);
    }
    Reader& newest = *waiting_.back().reader;
    waiting_.pop_back();
    Add(newest, now, State::kReads);
  }
}

}  // namespace outrider
