// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_writer.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <utility>

namespace outrider {

LogWriter::LogWriter(int descriptor, LineOfLost line_of_lost)
    : descriptor_(descriptor), line_of_lost_(std::move(line_of_lost)) {}

void LogWriter::Write(absl::string_view line) {
  MutexLock lock(mu_);
  std::string text;
  if (is_cut_) text = "\n";
  if (num_lost_ > 0) text += line_of_lost_(num_lost_);
  text.append(line.data(), line.size());
  if (WriteAll(text)) {
    num_lost_ = 0;
  } else {
    ++num_lost_;
  }
}

bool LogWriter::HasRoom() const {
  pollfd waited = {.fd = descriptor_, .events = POLLOUT, .revents = 0};
  return poll(&waited, 1, 0) > 0 && (waited.revents & POLLOUT) != 0;
}

// A pipe that has room takes PIPE_BUF bytes at once. Other files do too.
bool LogWriter::WriteAll(absl::string_view text) {
  size_t num_written = 0;
  while (num_written < text.size()) {
    if (!HasRoom()) break;
    const absl::string_view piece = text.substr(num_written, PIPE_BUF);
    const ssize_t count = write(descriptor_, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    num_written += static_cast<size_t>(count);
  }
  const bool is_whole = num_written == text.size();
  if (num_written > 0) is_cut_ = !is_whole;
  return is_whole;
}

}  // namespace outrider
