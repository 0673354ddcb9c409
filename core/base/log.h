// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_LOG_H_
#define OUTRIDER_CORE_BASE_LOG_H_

#include <sstream>

namespace outrider {

enum class LogLevel { kInfo, kWarning, kError };

namespace internal {

// One line to standard error, written at once: "2026-11-21T02:49:40.123Z W
// ...".
class LogLine {
 public:
  explicit LogLine(LogLevel level);
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  ~LogLine();
  std::ostream& stream() { return message_; }

 private:
  std::ostringstream message_;
};

}  // namespace internal
}  // namespace outrider

// OUTRIDER_LOG(kInfo) << ...; never prompts, tokens or whole ids.
#define OUTRIDER_LOG(level) \
  ::outrider::internal::LogLine(::outrider::LogLevel::level).stream()

#endif  // OUTRIDER_CORE_BASE_LOG_H_
