// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_SCHEDULE_H_
#define OUTRIDER_CORE_WIRE_SCHEDULE_H_

#include <map>
#include <string>

namespace outrider {

// When the drafter works; proto/outrider/v1/generation.proto says more.
enum class Schedule {
  kSequential,  // in turns with the verifier
  kAhead,       // meanwhile, as if all drafts stood
  kPredraft,    // meanwhile, for the likeliest verdicts
  kAuto,        // kPredraft where that pays
};

// Flags have these names.
inline const std::map<std::string, Schedule>& ScheduleNames() {
  static const std::map<std::string, Schedule> names = {
      {"sequential", Schedule::kSequential},
      {"ahead", Schedule::kAhead},
      {"predraft", Schedule::kPredraft},
      {"auto", Schedule::kAuto}};
  return names;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_SCHEDULE_H_
