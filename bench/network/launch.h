// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_NETWORK_LAUNCH_H_
#define OUTRIDER_BENCH_NETWORK_LAUNCH_H_

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace outrider::bench {

// Runs `act`, and ends, in a process of its own, which is killed should the
// thread that called this die: its id. Where this process has other threads,
// `act` may make nothing but system calls. UNAVAILABLE: the system refuses.
absl::StatusOr<pid_t> Fork(absl::FunctionRef<void()> act);

struct LaunchOptions {
  // Its standard input, output and error; negative: ours.
  std::array<int, 3> files = {-1, -1, -1};
  std::optional<cpu_set_t> cores = {};  // nothing: the calling thread's
};

// Runs a program as Fork does, with no signal blocked, in a session of its own,
// so that the terminal's Ctrl-C reaches only us. `arguments` begins with its
// path or name. Where it cannot run, its standard error says why, and it exits
// with 127.
absl::StatusOr<pid_t> Launch(const std::vector<std::string>& arguments,
                             const LaunchOptions& options = {});

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_NETWORK_LAUNCH_H_
