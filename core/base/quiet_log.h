// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_QUIET_LOG_H_
#define OUTRIDER_CORE_BASE_QUIET_LOG_H_

namespace outrider {

// Drops the log lines of this thread for as long as it lives: those of a
// simulation's runs, which nobody could read.
class QuietLog {
 public:
  QuietLog();
  QuietLog(const QuietLog&) = delete;
  ~QuietLog();
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_QUIET_LOG_H_
