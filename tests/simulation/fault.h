// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SIMULATION_FAULT_H_
#define OUTRIDER_TESTS_SIMULATION_FAULT_H_

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"

namespace outrider::testing {

// What goes wrong in a run. Those of a message are named by its number, over
// all that are sent; those of a node by the time at which they begin.
struct Fault {
  enum class Kind {
    // These are of the message `at`, a number.
    kDrop,
    kDuplicate,  // a second one comes `time` later
    kDelay,      // by `time`
    kCross,      // a reply comes `time` later, as if it answered what is asked
    kEcho,       // and all after it come again `time` later
    // What the node `node` suffers, from `at` microseconds on.
    kCrash,    // all is lost; it is back after `time`
    kPause,    // it stands still for `time`, then goes on with all that came
    kDeaf,     // what is sent to it is lost for `time`
    kDumb,     // what it sends is lost for `time`
    kRefuse,   // it has no room for `time`
    kEvict,    // its idle sessions go
    kNanRow,   // the next pass gives numbers that are none
    kDrain,    // it says so for `time`, then ends and another life begins
    kReplace,  // it is another model for `time`, if it is a verifier
    kLie,      // what it drafts or says of its cache is wrong for `time`
    // It concerns everybody.
    kStandStill,  // nothing runs for `time`
    kHangUp,      // the client of session `node` goes away and comes again
  };

  Kind kind = Kind::kDrop;
  int node = 0;
  int64_t at = 0;
  std::chrono::microseconds time = {};

  bool is_of_message() const { return kind <= Kind::kEcho; }
  std::string ToString() const;
};

// The faults of a seed, for `num_nodes` nodes: so many times as many as usual.
std::vector<Fault> DrawFaults(uint64_t seed, int num_nodes, int multiple = 1);
std::string ToString(absl::Span<const Fault> faults);

// A number that depends on both alone, as if drawn.
uint64_t HashOf(uint64_t seed, uint64_t number);

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SIMULATION_FAULT_H_
