// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_COVERAGE_H_
#define OUTRIDER_TESTS_SIMULATION_COVERAGE_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace outrider::testing {

// How often a session in each state had each answer from its verifier.
class Coverage {
 public:
  enum class State {
    kOpening,    // no verifier has answered it yet
    kOpen,       // it names the life that it has there
    kReopening,  // it opens again where it was
    kMoving,     // it opens elsewhere than it was
  };
  enum class Event {
    kAnswered,
    kDraining,  // the same, and it should go
    kMissed,
    kRefused,
    kBroken,
    kLate,
    kFailed,    // a row was none
    kReplaced,  // answered by another model
    kCancelled,
  };

  void Saw(State state, Event event) { ++At(state, event); }
  void Add(const Coverage& other) {
    for (size_t s = 0; s < kStates.size(); ++s) {
      for (size_t e = 0; e < kEvents.size(); ++e) {
        counts_[s][e] += other.counts_[s][e];
      }
    }
  }
  std::string ToString() const {
    std::string text = absl::StrFormat("%-10s", "");
    for (const char* event : kEvents)
      absl::StrAppendFormat(&text, "%10s", event);
    for (size_t s = 0; s < kStates.size(); ++s) {
      absl::StrAppendFormat(&text, "\n%-10s", kStates[s]);
      for (const int64_t count : counts_[s]) {
        absl::StrAppendFormat(&text, "%10d", count);
      }
    }
    return absl::StrCat(text, "\n");
  }
  // The pairs that no run had, of those that a few hundred runs should.
  std::vector<std::string> Missing() const {
    std::vector<std::string> missing;
    for (size_t s = 0; s < kStates.size(); ++s) {
      for (size_t e = 0; e < kEvents.size(); ++e) {
        if (counts_[s][e] > 0 || !IsExpected(State(s), Event(e))) continue;
        missing.push_back(absl::StrCat(kStates[s], ": ", kEvents[e]));
      }
    }
    return missing;
  }

 private:
  static constexpr std::array<const char*, 4> kStates = {"opening", "open",
                                                         "reopening", "moving"};
  static constexpr std::array<const char*, 9> kEvents = {
      "answered", "draining", "missed",   "refused",  "broken",
      "late",     "failed",   "replaced", "cancelled"};

  // An opening is missed only where an older one overtakes it; another model
  // knows no life of an older one, and seldom comes in the moment in which a
  // session begins or moves.
  static bool IsExpected(State state, Event event) {
    if (event == Event::kReplaced) return state == State::kReopening;
    return event != Event::kMissed || state == State::kOpen;
  }
  int64_t& At(State state, Event event) {
    return counts_[static_cast<size_t>(state)][static_cast<size_t>(event)];
  }

  std::array<std::array<int64_t, kEvents.size()>, kStates.size()> counts_ = {};
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_COVERAGE_H_
