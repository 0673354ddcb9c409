// SPDX-License-Identifier: Apache-2.0
#include "bench/network/become.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace outrider::bench {

std::vector<char*> ArgumentsOf(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  return arguments;
}

void Become(char* const* arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  execvp(arguments[0], arguments);
  const char* const message = std::strerror(errno);
  (void)!write(STDERR_FILENO, message, std::strlen(message));
  (void)!write(STDERR_FILENO, "\n", 1);
  _exit(127);
}

}  // namespace outrider::bench
