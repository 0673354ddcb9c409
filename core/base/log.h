// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_LOG_H_
#define OUTRIDER_CORE_BASE_LOG_H_

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace outrider {

enum class LogLevel { kInfo, kWarning, kError };

// How lines look from now on; for main, before it starts threads.
//   text: 2026-11-21T02:49:40.123Z W the message request_id=4f1c
//   JSON: {"time":"...","level":"warning","message":"...","request_id":"4f1c"}
enum class LogFormat { kText, kJson };
void SetLogFormat(LogFormat format);
LogFormat CurrentLogFormat();

// What a line is about, besides its message: a name, and a text, a finite
// number or a list of such; JSON has numbers without quotes, and [1,0.5].
struct LogField {
  LogField(std::string key, absl::string_view value);
  LogField(std::string key, double value);
  LogField(std::string key, absl::Span<const double> values);

  std::string name;
  std::string text;  // 1,0.5
  std::string json;  // [1,0.5]
};
using LogFields = std::vector<LogField>;

// The line itself, newline included; `time` is RFC 3339. JSON is valid whatever
// bytes the message has.
std::string FormatLogLine(LogFormat format, LogLevel level,
                          absl::string_view time, absl::string_view message,
                          const LogFields& fields);

namespace internal {

// One line to standard error, written at once.
class LogLine {
 public:
  explicit LogLine(LogLevel level, LogFields fields = {})
      : level_(level), fields_(std::move(fields)) {}
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  ~LogLine();
  std::ostream& stream() { return message_; }

 private:
  const LogLevel level_;
  const LogFields fields_;
  std::ostringstream message_;
};

}  // namespace internal
}  // namespace outrider

// OUTRIDER_LOG(kInfo) << ...; never prompts, tokens or whole ids. Fields may
// follow the level: OUTRIDER_LOG(kInfo, {{"request_id", id}}) << ...
#define OUTRIDER_LOG(level, ...)                             \
  ::outrider::internal::LogLine(                             \
      ::outrider::LogLevel::level __VA_OPT__(, __VA_ARGS__)) \
      .stream()

#endif  // OUTRIDER_CORE_BASE_LOG_H_
