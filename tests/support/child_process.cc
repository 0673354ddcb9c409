// SPDX-License-Identifier: Apache-2.0
#include "tests/support/child_process.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "absl/strings/string_view.h"
#include "core/base/check.h"

namespace outrider::testing {

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  int pipe_ends[2];
  OUTRIDER_CHECK(pipe(pipe_ends) == 0);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) {
    argv.push_back(const_cast<char*>(argument.c_str()));
  }
  argv.push_back(nullptr);
  pid_ = fork();
  OUTRIDER_CHECK(pid_ >= 0);
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(pipe_ends[1], STDOUT_FILENO);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    execv(argv[0], argv.data());
    _exit(127);
  }
  close(pipe_ends[1]);
  stdout_ = pipe_ends[0];
}

ChildProcess::~ChildProcess() {
  if (!ended_) {
    Signal(SIGTERM);
    Wait();
  }
  close(stdout_);
}

absl::StatusOr<std::string> ChildProcess::ListenAddress() {
  constexpr absl::string_view kBefore = "listening on ";
  std::string line;
  char c = 0;
  while (read(stdout_, &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    const size_t place = line.find(kBefore.data(), 0, kBefore.size());
    if (place != std::string::npos) {
      const size_t start = place + kBefore.size();
      return line.substr(start, line.find(' ', start) - start);
    }
    line.clear();
  }
  return absl::UnavailableError("the process ended before it served");
}

void ChildProcess::Signal(int signal) { kill(pid_, signal); }

int ChildProcess::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  ended_ = true;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace outrider::testing
