// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <unistd.h>

#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace outrider::internal {

LogLine::LogLine(LogLevel level) {
  const char letter = level == LogLevel::kInfo      ? 'I'
                      : level == LogLevel::kWarning ? 'W'
                                                    : 'E';
  message_ << absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                               absl::UTCTimeZone())
           << ' ' << letter << ' ';
}

LogLine::~LogLine() {
  message_ << '\n';
  const std::string line = message_.str();
  // One write: lines of several threads never mix.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace outrider::internal
