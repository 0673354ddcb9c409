// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_LOG_WRITER_H_
#define OUTRIDER_CORE_BASE_LOG_WRITER_H_

#include <functional>
#include <string>

#include "absl/strings/string_view.h"
#include "core/base/mutex.h"

namespace outrider {

// Writes lines to a file descriptor without waiting for whoever reads them, as
// a program serves on while nobody reads its log: a line that finds no room is
// lost, and counted. The descriptor may be shared with other processes, so that
// it is asked for room and left as it is; a terminal is opened anew, as it says
// that it has room where it has that of a byte. Thread-safe.
class LogWriter {
 public:
  // The line that tells of so many lost ones, before the next that has room.
  using LineOfLost = std::function<std::string(int num_lost)>;

  LogWriter(int descriptor, LineOfLost line_of_lost);
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;
  ~LogWriter();

  // `line` ends with its newline. Lines of several threads never mix.
  void Write(absl::string_view line);

 private:
  bool HasRoom() const;
  bool WriteAll(absl::string_view text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int own_descriptor_;  // -1: there is none
  const int descriptor_;
  const LineOfLost line_of_lost_;
  Mutex mu_;
  int num_lost_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_cut_ ABSL_GUARDED_BY(mu_) = false;  // the last one, in its middle
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_LOG_WRITER_H_
