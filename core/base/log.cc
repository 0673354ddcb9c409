// SPDX-License-Identifier: Apache-2.0
#include "core/base/log.h"

#include <unistd.h>

#include <atomic>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/base/log_writer.h"
#include "core/base/quiet_log.h"

namespace outrider {
namespace {

std::atomic<LogFormat> log_format = LogFormat::kText;
thread_local bool is_quiet = false;

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

std::string Joined(absl::Span<const double> numbers) {
  return absl::StrJoin(numbers, ",", [](std::string* out, double number) {
    absl::StrAppendFormat(out, "%.10g", number);
  });
}

}  // namespace

LogField::LogField(std::string key, absl::string_view value)
    : name(std::move(key)), text(value), json(Quoted(value)) {}

LogField::LogField(std::string key, double value)
    : name(std::move(key)), text(Joined({&value, 1})), json(text) {}

LogField::LogField(std::string key, absl::Span<const double> values)
    : name(std::move(key)),
      text(Joined(values)),
      json(absl::StrCat("[", text, "]")) {}

void SetLogFormat(LogFormat format) { log_format = format; }
LogFormat CurrentLogFormat() { return log_format; }

QuietLog::QuietLog() { is_quiet = true; }
QuietLog::~QuietLog() { is_quiet = false; }

std::string FormatLogLine(LogFormat format, LogLevel level,
                          absl::string_view time, absl::string_view message,
                          const LogFields& fields) {
  const LevelName name = NameOf(level);
  std::string line;
  if (format == LogFormat::kJson) {
    line = absl::StrCat("{\"time\":", Quoted(time),
                        ",\"level\":", Quoted(name.word),
                        ",\"message\":", Quoted(message));
    for (const LogField& field : fields) {
      absl::StrAppend(&line, ",", Quoted(field.name), ":", field.json);
    }
    line += '}';
  } else {
    line = absl::StrCat(time, " ", absl::string_view(&name.letter, 1), " ",
                        OnOneLine(message));
    for (const LogField& field : fields) {
      absl::StrAppend(&line, " ", field.name, "=", OnOneLine(field.text));
    }
  }
  line += '\n';
  return line;
}

namespace {

std::string TimeNow() {
  return absl::FormatTime("%Y-%m-%dT%H:%M:%E3SZ", absl::Now(),
                          absl::UTCTimeZone());
}

std::string LineOfLost(int num_lost) {
  return FormatLogLine(
      log_format, LogLevel::kWarning, TimeNow(),
      absl::StrCat(num_lost, " log lines are lost: they could not be written"),
      {});
}

// Never destroyed, as threads may log to the end of the process.
LogWriter& StandardError() {
  static LogWriter& writer = *new LogWriter(STDERR_FILENO, LineOfLost);
  return writer;
}

}  // namespace

namespace internal {

LogLine::~LogLine() {
  if (is_quiet) return;
  const std::string line =
      FormatLogLine(log_format, level_, TimeNow(), message_.str(), fields_);
  StandardError().Write(line);
}

}  // namespace internal
}  // namespace outrider
