// SPDX-License-Identifier: Apache-2.0
#include "bench/load/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "bench/network/launch.h"
#include "bench/network/system_error.h"
#include "core/base/status_macros.h"

namespace outrider::bench {

using Clock = std::chrono::steady_clock;

namespace {

// The exit status, or 128 + the signal that ended it, of what waitpid gives.
int StatusNumber(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    const std::vector<std::string>& arguments, const Cores& cores) {
  const std::string name = arguments[0].substr(arguments[0].rfind('/') + 1);
  if (access(arguments[0].c_str(), X_OK) != 0) {
    return absl::UnavailableError(
        absl::StrCat(name, " is not beside this program: build it first"));
  }
  std::array<int, 2> pipe_ends = {};
  const Socket nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Socket errors(memfd_create("stderr", MFD_CLOEXEC));
  if (!nothing.is_open() || !errors.is_open() ||
      pipe2(pipe_ends.data(), O_CLOEXEC) != 0) {
    return SystemError(absl::StrCat("start ", name));
  }
  Socket read_end(pipe_ends[0]);
  const Socket write_end(pipe_ends[1]);
  LaunchOptions options = {
      .files = {nothing.fd(), write_end.fd(), errors.fd()}};
  if (!cores.empty()) options.cores = SetOf(cores);
  OUTRIDER_ASSIGN_OR_RETURN(const pid_t pid, Launch(arguments, options));
  return std::unique_ptr<ChildProcess>(
      new ChildProcess(name, pid, std::move(read_end), std::move(errors)));
}

ChildProcess::ChildProcess(std::string name, pid_t pid, Socket out,
                           Socket errors)
    : name_(std::move(name)),
      pid_(pid),
      output_(std::move(out)),
      errors_(std::move(errors)),
      interruption_(eventfd(0, EFD_CLOEXEC)) {}

ChildProcess::~ChildProcess() {
  if (status_.has_value()) return;
  kill(pid_, SIGTERM);
  for (int i = 0; i < 1000; ++i) {
    if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

absl::StatusOr<bool> ChildProcess::ReadSome(Clock::time_point latest) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      latest - Clock::now());
  std::array<pollfd, 2> polled = {
      {{interruption_.fd(), POLLIN, 0}, {output_.fd(), POLLIN, 0}}};
  const int timeout = static_cast<int>(std::max<int64_t>(left.count(), 0));
  if (poll(polled.data(), polled.size(), timeout) <= 0) {
    return Failure("timed out");
  }
  if (polled[0].revents != 0) return absl::CancelledError("interrupted");
  std::array<char, 4096> buffer;
  const ssize_t count = read(output_.fd(), buffer.data(), buffer.size());
  if (count > 0) out_.append(buffer.data(), count);
  return count > 0;
}

absl::Status ChildProcess::Failure(absl::string_view did) const {
  std::array<char, 2000> buffer;
  struct stat file = {};
  fstat(errors_.fd(), &file);
  const off_t begin =
      std::max<off_t>(0, file.st_size - static_cast<off_t>(buffer.size()));
  const ssize_t count =
      pread(errors_.fd(), buffer.data(), buffer.size(), begin);
  const absl::string_view words = absl::StripAsciiWhitespace(
      absl::string_view(buffer.data(), std::max<ssize_t>(count, 0)));
  return absl::UnavailableError(absl::StrCat(
      name_, " ", did, ": ", words.empty() ? "it said nothing" : words));
}

absl::StatusOr<std::string> ChildProcess::ReadLine(
    std::chrono::milliseconds longest) {
  const Clock::time_point latest = Clock::now() + longest;
  while (out_.find('\n') == std::string::npos) {
    OUTRIDER_ASSIGN_OR_RETURN(const bool is_more, ReadSome(latest));
    if (!is_more) return Failure("did not run");
  }
  const size_t end = out_.find('\n');
  std::string line = out_.substr(0, end);
  out_.erase(0, end + 1);
  return line;
}

absl::StatusOr<std::string> ChildProcess::ListenAddress(
    std::chrono::milliseconds longest) {
  // "outrider-verifier listening on 127.0.0.1:34567 (...)"
  constexpr absl::string_view kWords = "listening on ";
  const Clock::time_point latest = Clock::now() + longest;
  while (true) {
    OUTRIDER_ASSIGN_OR_RETURN(
        const std::string line,
        ReadLine(std::chrono::duration_cast<std::chrono::milliseconds>(
            latest - Clock::now())));
    const size_t found = line.find(kWords.data(), 0, kWords.size());
    if (found == std::string::npos) continue;
    const size_t begin = found + kWords.size();
    return line.substr(begin, line.find(' ', begin) - begin);
  }
}

void ChildProcess::Interrupt() { eventfd_write(interruption_.fd(), 1); }

absl::Status ChildProcess::CheckRuns() {
  int status = 0;
  if (!status_.has_value() && waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = status;
  }
  if (!status_.has_value()) return absl::OkStatus();
  return Failure(absl::StrCat("ended with status ", StatusNumber(*status_)));
}

void ChildProcess::Signal(int signal) {
  if (!status_.has_value()) kill(pid_, signal);
}

int ChildProcess::Wait() {
  if (!status_.has_value()) {
    int status = 0;
    waitpid(pid_, &status, 0);
    status_ = status;
  }
  return StatusNumber(*status_);
}

absl::StatusOr<std::string> ChildProcess::ReadAll(
    std::chrono::milliseconds longest) {
  const Clock::time_point latest = Clock::now() + longest;
  bool is_more = true;
  while (is_more) {
    OUTRIDER_ASSIGN_OR_RETURN(is_more, ReadSome(latest));
  }
  if (Wait() != 0) return Failure("did not run");
  return out_;
}

}  // namespace outrider::bench
