// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_REQUEST_READS_H_
#define OUTRIDER_CORE_RPC_REQUEST_READS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <random>

#include "absl/status/status.h"
#include "core/base/mutex.h"

namespace outrider {

// Whose request is read when. What is being read may take as much memory as the
// largest message, whatever comes of it, while what nobody reads yet is held
// back at its sender. So only so many are read at the same time.
//
// Who stalls must not keep others waiting: while any wait, reads that have
// taken too long are refused, the oldest first. The more wait, the less time a
// read has, so that any rate of stalled ones below `most_reads` in each
// `least_patience` lets others through at once. Who waits longest goes first. A
// burst of requests that come by themselves is not taken for stalled ones.
//
// Time is counted in ticks, which come to the same queue as what was read: a
// process that is held up for a while finds nobody late on its return.
// Thread-safe.
class RequestReads {
 public:
  static constexpr std::chrono::milliseconds kTick{20};

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
    // So many ticks a read may take while up to `few_waiting` wait. Where there
    // are so many times more it is as many times less, but no less than this.
    int64_t patience = 50;
    int64_t few_waiting = 8;
    int64_t least_patience = 6;
    // No read takes longer, even if nobody waits.
    int64_t longest = 1500;
  };

  explicit RequestReads(const Limits& limits) : limits_(limits) {}

  // Lives until it is refused or has left. True: ticks are to begin.
  bool Enter(Reader& reader);
  // Its read has ended. False: it was refused meanwhile.
  bool Leave(Reader& reader);
  // False: no more are needed.
  bool Tick();

 private:
  struct Entry {
    Reader* reader;
    int64_t since;
  };

  void Add(Reader& reader, State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RefuseOldest(Entries& entries, const char* why)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  int64_t Patience() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Settle() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Limits limits_;
  Mutex mu_;
  bool ticks_ ABSL_GUARDED_BY(mu_) = false;
  int64_t now_ ABSL_GUARDED_BY(mu_) = 0;
  Entries reads_ ABSL_GUARDED_BY(mu_);
  Entries waiting_ ABSL_GUARDED_BY(mu_);
  std::minstd_rand jitter_ ABSL_GUARDED_BY(mu_);
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_REQUEST_READS_H_
