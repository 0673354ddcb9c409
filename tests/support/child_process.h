// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_CHILD_PROCESS_H_
#define OUTRIDER_TESTS_SUPPORT_CHILD_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace outrider::testing {

// A program that runs beside the test; ended with SIGTERM when this object
// goes. Its standard output is read here, its standard error is the test's.
class ChildProcess {
 public:
  // `arguments[0]` is the program. The child dies with this process.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  // The HOST:PORT of its line "... listening on HOST:PORT ...". UNAVAILABLE
  // where it ends without one.
  absl::StatusOr<std::string> ListenAddress();

  void Signal(int signal);
  // Waits for its end: the exit status, or 128 + the signal that ended it.
  int Wait();

 private:
  pid_t pid_ = -1;
  int stdout_ = -1;
  bool ended_ = false;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_CHILD_PROCESS_H_
