// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_REQUEST_READS_H_
#define OUTRIDER_CORE_RPC_REQUEST_READS_H_

#include <chrono>
#include <cstddef>
#include <list>

#include "absl/status/status.h"
#include "core/base/mutex.h"

namespace outrider {

// Whose request is read when. What is being read may take as much memory as the
// largest message, whatever comes of it, while what nobody reads yet is held
// back at its sender. So only so many are read at the same time.
//
// Who stalls must not keep others waiting, and a newcomer's request is mostly
// there already. So the newest goes first, and while any wait, as many of the
// oldest reads are refused, once they have taken longer than `patience`.
// Thread-safe.
class RequestReads {
 public:
  using Clock = std::chrono::steady_clock;

 private:
  enum class State { kOut, kWaits, kReads };
  struct Entry;
  using Entries = std::list<Entry>;  // the oldest first

 public:
  // Is told under the lock, so must not call back.
  class Reader {
   protected:
    ~Reader() = default;

   private:
    friend class RequestReads;
    virtual void BeginRead() = 0;
    // Instead of BeginRead, or after it.
    virtual void Refuse(const absl::Status& status) = 0;

    State state_ = State::kOut;
    Entries::iterator place_;
  };

  struct Limits {
    size_t most_reads = 0;  // at the same time
    size_t most_waiting = 1024;
    std::chrono::milliseconds patience = std::chrono::seconds(1);
    // No read and no wait takes longer, even if nobody else waits.
    std::chrono::milliseconds longest = std::chrono::seconds(30);
  };

  explicit RequestReads(const Limits& limits) : limits_(limits) {}

  // Lives until it is refused or has left. True: ticks are to begin.
  bool Enter(Reader& reader, Clock::time_point now = Clock::now());
  // Its read has ended. False: it was refused meanwhile.
  bool Leave(Reader& reader, Clock::time_point now = Clock::now());
  // Comes a few times a second. False: no more are needed.
  bool Tick(Clock::time_point now = Clock::now());

 private:
  struct Entry {
    Reader* reader;
    Clock::time_point since;
  };

  void Add(Reader& reader, Clock::time_point now, State state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseOldest(Entries& entries, const char* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseOlderThan(std::chrono::milliseconds age, Clock::time_point now,
                       Entries& entries) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Settle(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  Mutex mu_;
  bool ticks_ ABSL_GUARDED_BY(mu_) = false;
  Entries reads_ ABSL_GUARDED_BY(mu_);
  Entries waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_REQUEST_READS_H_
