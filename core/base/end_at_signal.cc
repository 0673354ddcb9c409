// SPDX-License-Identifier: Apache-2.0
#include "core/base/end_at_signal.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>

#include "core/base/check.h"

namespace outrider {
namespace {

bool HasDefaultAction(int signal) {
  struct sigaction action;
  OUTRIDER_CHECK(sigaction(signal, nullptr, &action) == 0);
  return action.sa_handler == SIG_DFL;
}

// The default action of a signal; may be called in a handler.
void EndBy(int signal) {
  std::signal(signal, SIG_DFL);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
  raise(signal);
  // The kernel keeps it from the first process of a PID namespace, such as a
  // container's program.
  _exit(128 + signal);  // the status that a shell has for it
}

void Watch(int stop) {
  const sigset_t signals = TerminationSignals();
  const int arrivals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  OUTRIDER_CHECK(arrivals >= 0);
  pollfd sources[] = {{.fd = stop, .events = POLLIN, .revents = 0},
                      {.fd = arrivals, .events = POLLIN, .revents = 0}};
  while (sources[0].revents == 0) {
    signalfd_siginfo arrived;
    if (sources[1].revents != 0 &&
        read(arrivals, &arrived, sizeof(arrived)) == sizeof(arrived)) {
      const int signal = static_cast<int>(arrived.ssi_signo);
      if (HasDefaultAction(signal)) EndBy(signal);
    }
    OUTRIDER_CHECK(poll(sources, 2, /*timeout=*/-1) > 0 || errno == EINTR);
  }
  close(arrivals);
}

}  // namespace

sigset_t TerminationSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

void EndAtNextSignal() {
  const sigset_t signals = TerminationSignals();
  for (const int signal : {SIGTERM, SIGINT}) {
    if (HasDefaultAction(signal)) std::signal(signal, EndBy);
  }
  pthread_sigmask(SIG_UNBLOCK, &signals, nullptr);
}

EndAtSignal::EndAtSignal() {
  OUTRIDER_CHECK(pipe2(stop_, O_CLOEXEC) == 0);
  thread_ = std::thread([stop = stop_[0]] { Watch(stop); });
}

EndAtSignal::~EndAtSignal() {
  close(stop_[1]);
  thread_.join();
  close(stop_[0]);
}

}  // namespace outrider
