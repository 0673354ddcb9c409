// SPDX-License-Identifier: Apache-2.0
#include "core/base/log_writer.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"

namespace outrider {
namespace {

// Another opening of the terminal, whose writes do not block while those of
// others that have it do. -1: it is none, or it may not be opened.
int OpenTerminal(int descriptor) {
  if (isatty(descriptor) == 0) return -1;
  return open(absl::StrCat("/proc/self/fd/", descriptor).c_str(),
              O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

}  // namespace

LogWriter::LogWriter(int descriptor, LineOfLost line_of_lost)
    : own_descriptor_(OpenTerminal(descriptor)),
      descriptor_(own_descriptor_ < 0 ? descriptor : own_descriptor_),
      line_of_lost_(std::move(line_of_lost)) {}

LogWriter::~LogWriter() {
  if (own_descriptor_ >= 0) close(own_descriptor_);
}

void LogWriter::Write(absl::string_view line) {
  MutexLock lock(mu_);
  std::string before;
  if (is_cut_) before = "\n";
  if (num_lost_ > 0) before += line_of_lost_(num_lost_);
  if (WriteAll(before)) {
    num_lost_ = 0;
    if (WriteAll(line)) return;
  }
  ++num_lost_;
}

bool LogWriter::HasRoom() const {
  pollfd waited = {.fd = descriptor_, .events = POLLOUT, .revents = 0};
  return poll(&waited, 1, 0) > 0 && (waited.revents & POLLOUT) != 0;
}

// A pipe that has room takes PIPE_BUF bytes without blocking, and files never
// block for long. A terminal that could not be opened anew may block.
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
