// SPDX-License-Identifier: Apache-2.0
#include "core/engine/job.h"

#include <exception>

#include "core/base/log.h"
#include "core/base/thrown_status.h"

namespace outrider {

void Job::Begin() {
  try {
    want = work->Begin(*session);
  } catch (const std::exception& e) {
    failure = ThrownStatus("a session failed", e);
  }
}

void Job::Take() {
  const Clock::time_point start = Clock::now();
  try {
    taken = work->Take(rows);
  } catch (const std::exception& e) {
    taken = ThrownStatus("a session failed", e);
  }
  rows.clear();
  const double seconds =
      std::chrono::duration<double>(Clock::now() - start).count();
  ending.compute_seconds += seconds;
  ending.own_seconds += seconds;
}

void Job::Finish() {
  try {
    work->Finish(ending);
  } catch (const std::exception& e) {
    OUTRIDER_LOG(kError) << "an answer was lost: " << e.what();
  }
}

}  // namespace outrider
