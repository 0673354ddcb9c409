// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_END_AT_SIGNAL_H_
#define OUTRIDER_CORE_BASE_END_AT_SIGNAL_H_

#include <csignal>
#include <thread>

namespace outrider {

// SIGTERM and SIGINT, which servers block from their start.
sigset_t TerminationSignals();

// From now on the calling thread takes them, and they end the process: also one
// that is the first of its PID namespace, such as a container's program, for
// which the kernel's own default action is nothing. Ignored ones stay ignored.
void EndAtNextSignal();

// While it lives, the process does end at termination signals, as if they were
// not blocked, the first of a PID namespace too: for what takes long before
// anybody waits for them, such as loading weights. One that comes later stays
// pending.
class EndAtSignal {
 public:
  EndAtSignal();
  ~EndAtSignal();
  EndAtSignal(const EndAtSignal&) = delete;
  EndAtSignal& operator=(const EndAtSignal&) = delete;

 private:
  int stop_[2] = {-1, -1};  // a pipe: its other end is closed to stop
  std::thread thread_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_END_AT_SIGNAL_H_
