// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace outrider {
namespace {

std::atomic<LogFormat> log_format = LogFormat::kText;

struct LevelName {
  char letter;
  absl::string_view word;
};
LevelName NameOf(LogLevel level) {
  switch (level) {
    case LogLevel::kInfo:
      return {'I', "info"};
    case LogLevel::kWarning:
      return {'W', "warning"};
    case LogLevel::kError:
      return {'E', "error"};
  }
  return {'E', "error"};
}

// Bytes outside ASCII may be no UTF-8, which JSON demands: they are told by
// number.
std::string Quoted(absl::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte > 0x7e) {
      absl::StrAppendFormat(&quoted, "\\u%04x", byte);
    } else {
      quoted += c;
    }
  }
  return quoted += '"';
}

// Log lines are read by line.
std::string OnOneLine(absl::string_view text) {
  std::string line(text);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

}  // namespace

void SetLogFormat(LogFormat format) { log_format = format; }

std::string FormatLogLine(LogFormat format, LogLevel level,
                          absl::string_view time, absl::string_view message,
                          const LogFields& fields) {
  const LevelName name = NameOf(level);
  std::string line;
  if (format == LogFormat::kJson) {
    line = absl::StrCat("{\"time\":", Quoted(time),
                        ",\"level\":", Quoted(name.word),
                        ",\"message\":", Quoted(message));
    for (const auto& [key, value] : fields) {
      absl::StrAppend(&line, ",", Quoted(key), ":", Quoted(value));
    }
    line += '}';
  } else {
    line = absl::StrCat(time, " ", absl::string_view(&name.letter, 1), " ",
                        OnOneLine(message));
    for (const auto& [key, value] : fields) {
      absl::StrAppend(&line, " ", key, "=", OnOneLine(value));
    }
  }
  line += '\n';
  return line;
}

namespace internal {

LogLine::~LogLine() {
  const std::string time = absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                                            absl::UTCTimeZone());
  const std::string line =
      FormatLogLine(log_format, level_, time, message_.str(), fields_);
  // One write: lines of several threads never mix.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace internal
}  // namespace outrider
