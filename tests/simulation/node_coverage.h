// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_NODE_COVERAGE_H_
#define OUTRIDER_TESTS_SIMULATION_NODE_COVERAGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/session/cache_delta.h"
#include "core/session/node_session.h"

namespace outrider::testing {

// How often a node had each message of a session in each state: the table of
// proto/README.md.
class NodeCoverage {
 public:
  enum class State { kUnknown, kIdle, kAtWork };
  enum class Message {
    kOpening,       // with a step above all that it knows of
    kSameOpening,   // that which minted the live incarnation
    kOldOpening,    // any other
    kOtherLife,     // of an incarnation that is not the live one
    kOldStep,       // below the last one
    kSameStep,      // the last one, the same bytes
    kOtherContent,  // the last one, other bytes
    kTooLong,       // keeps more than is cached
    kOtherPrefix,   // keeps other tokens than are cached
    kNext,          // what follows
    kRelease,
    kOldRelease,      // of another life, or a step below the last one
    kBlindRelease,    // of an opening that was not answered
    kReleasedOpening  // that was given up before it came
  };

  void Saw(const NodeSession* session, Message message) {
    const State state = session == nullptr    ? State::kUnknown
                        : session->is_at_work ? State::kAtWork
                                              : State::kIdle;
    ++counts_[static_cast<size_t>(state)][static_cast<size_t>(message)];
  }
  static Message KindOf(const RequestHeader& header, uint64_t digest,
                        const NodeSession* session);
  static Message KindOfRelease(const RequestHeader& header,
                               const NodeSession* session);

  void Add(const NodeCoverage& other) {
    for (size_t s = 0; s < kStates.size(); ++s) {
      for (size_t m = 0; m < kMessages.size(); ++m) {
        counts_[s][m] += other.counts_[s][m];
      }
    }
  }
  std::string ToString() const;
  // The pairs that should have been seen and were not, and those that were and
  // cannot be, unless a coordinator says two things in one step.
  std::vector<std::string> Wrong() const;

 private:
  static constexpr std::array<const char*, 3> kStates = {"unknown", "idle",
                                                         "at work"};
  static constexpr std::array<const char*, 14> kMessages = {
      "opening",       "same opening",    "old opening",
      "other life",    "old step",        "same step",
      "other content", "too long",        "other prefix",
      "next",          "release",         "old release",
      "blind release", "released opening"};

  std::array<std::array<int64_t, kMessages.size()>, kStates.size()> counts_ =
      {};
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_NODE_COVERAGE_H_
