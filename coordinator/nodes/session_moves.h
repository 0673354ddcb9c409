// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_NODES_SESSION_MOVES_H_
#define OUTRIDER_COORDINATOR_NODES_SESSION_MOVES_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>

namespace outrider {

// Why a session goes on at another node.
enum class MoveReason {
  kLost,      // it is gone, or its connection is
  kLate,      // it has not answered in time
  kDraining,  // it shuts down, or its name no longer has it
  kReplaced,  // it came back as another model
  kOutgrown,  // its memory is too small for the text
  kFailed,    // it could not compute a step
  kFound,     // there was none before: a drafter
};
inline constexpr MoveReason kMoveReasons[] = {
    MoveReason::kLost,     MoveReason::kLate,     MoveReason::kDraining,
    MoveReason::kReplaced, MoveReason::kOutgrown, MoveReason::kFailed,
    MoveReason::kFound};

inline const char* NameOf(MoveReason reason) {
  constexpr const char* kNames[] = {
      "lost", "late", "draining", "replaced", "outgrown", "failed", "found"};
  return kNames[static_cast<int>(reason)];
}

// What a coordinator counts of them. Thread-safe.
struct SessionMoves {
  using Counts = std::array<std::atomic<int64_t>, std::size(kMoveReasons)>;

  Counts of_verifiers = {};  // by reason
  Counts of_drafters = {};
  std::atomic<int64_t> num_to_other_kernels = 0;
  // Sessions that draft no more, as two drafters were lost under them.
  std::atomic<int64_t> num_undrafted = 0;
  std::atomic<int> num_held = 0;  // that wait for a verifier to go on
};

// Is counted as held for as long as it exists.
class Held {
 public:
  explicit Held(SessionMoves& moves) : moves_(moves) { ++moves_.num_held; }
  Held(const Held&) = delete;
  ~Held() { --moves_.num_held; }

 private:
  SessionMoves& moves_;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_NODES_SESSION_MOVES_H_
