// SPDX-License-Identifier: Apache-2.0
#include "bench/network/launch.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "bench/network/system_error.h"

namespace outrider::bench {
namespace {

// Pointers into `words`, and the null at their end, as exec wants them.
std::vector<char*> ArgumentsOf(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  return arguments;
}

// Says what the child could not do, and ends it. Between fork and exec nothing
// may be allocated.
[[noreturn]] void EndChild(const char* what) {
  const char* const reason = std::strerror(errno);
  for (const char* const words : {what, ": ", reason, "\n"}) {
    (void)!write(STDERR_FILENO, words, std::strlen(words));
  }
  _exit(127);
}

[[noreturn]] void Become(char* const* arguments, const LaunchOptions& options) {
  setsid();
  for (int i = 0; i < 3; ++i) {
    if (options.files[i] == i)
      fcntl(i, F_SETFD, 0);  // it would close with exec
    if (options.files[i] >= 0) dup2(options.files[i], i);
  }
  if (options.cores.has_value() &&
      sched_setaffinity(0, sizeof(*options.cores), &*options.cores) != 0) {
    EndChild("it may not run on the cores that are its own");
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(arguments[0], arguments);
  EndChild(arguments[0]);
}

}  // namespace

absl::StatusOr<pid_t> Fork(absl::FunctionRef<void()> act) {
  const pid_t pid = fork();
  if (pid < 0) return SystemError("start a process");
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  act();
  _exit(0);
}

absl::StatusOr<pid_t> Launch(const std::vector<std::string>& arguments,
                             const LaunchOptions& options) {
  const std::vector<char*> pointers = ArgumentsOf(arguments);
  return Fork([&] { Become(pointers.data(), options); });
}

}  // namespace outrider::bench
