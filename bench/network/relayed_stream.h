// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_RELAYED_STREAM_H_
#define OUTRIDER_BENCH_NETWORK_RELAYED_STREAM_H_

#include <deque>
#include <optional>
#include <string>

#include "bench/network/network_link.h"

namespace outrider::bench {

// One direction of a relayed connection: what was read from one socket, until
// it is due at the other. Confined to the proxy's thread. Sockets do not block.
class RelayedStream {
 public:
  using Clock = LinkSchedule::Clock;
  enum class Outcome { kOk, kBroken };

  explicit RelayedStream(LinkSchedule schedule) : schedule_(schedule) {}

  void SetLink(const LinkOptions& link) { schedule_.SetLink(link); }

  // Takes what `source` has. Its end is relayed like bytes, with the delay.
  Outcome Read(int source, Clock::time_point now);
  // Gives `sink` what is due; at the end of the stream, its end.
  Outcome Write(int sink, Clock::time_point now);

  // Whether there is room for more; the queue is bounded.
  bool wants_read() const;
  // Whether what is due waits for the sink to take it.
  bool is_blocked() const { return is_blocked_; }
  bool is_finished() const { return has_ended_ && queue_.empty(); }
  // When the next block is due.
  std::optional<Clock::time_point> NextArrival() const;
  uint64_t num_bytes_written() const { return num_bytes_written_; }

 private:
  struct Block {
    Clock::time_point arrival = {};
    std::string bytes = {};  // empty: the end of the stream
  };

  LinkSchedule schedule_;
  std::deque<Block> queue_;
  size_t num_bytes_queued_ = 0;
  size_t num_first_written_ = 0;  // of queue_[0]
  uint64_t num_bytes_written_ = 0;
  bool has_ended_ = false;
  bool is_blocked_ = false;
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_RELAYED_STREAM_H_
