// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_BENCH_LOAD_CHILD_PROCESS_H_
#define OUTRIDER_BENCH_LOAD_CHILD_PROCESS_H_

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bench/load/core_placement.h"
#include "bench/network/socket.h"

namespace outrider::bench {

// A program that runs beside this one. It is in a session of its own, so that
// Ctrl-C reaches only us; it is killed should the thread that started it die.
// Thread-compatible, but for Interrupt.
class ChildProcess {
 public:
  // `arguments` begins with the program's path. It runs on `cores`, or where
  // the calling thread may if there are none. What it writes to standard error
  // goes to a file without a name. UNAVAILABLE: it cannot be run.
  static absl::StatusOr<std::unique_ptr<ChildProcess>> Start(
      const std::vector<std::string>& arguments, const Cores& cores = {});
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  // SIGTERM, and SIGKILL to what is still there after 10 s.
  ~ChildProcess();

  // Blocks until standard output has a line, or the program's end; without the
  // newline. UNAVAILABLE with its last words, where none came.
  absl::StatusOr<std::string> ReadLine(std::chrono::milliseconds longest);
  // Blocks until it has printed "... listening on HOST:PORT ...": HOST:PORT.
  // UNAVAILABLE with its last words, where it does not.
  absl::StatusOr<std::string> ListenAddress(std::chrono::milliseconds longest);
  // Blocks until it ends by itself: all of its output. UNAVAILABLE with its
  // last words, where it failed.
  absl::StatusOr<std::string> ReadAll(std::chrono::milliseconds longest);

  // Ends reads, blocked ones and those to come, with CANCELLED. Thread-safe.
  void Interrupt();
  // UNAVAILABLE with its last words, where it has ended.
  absl::Status CheckRuns();

  // Nothing once it has ended, and this object knows.
  void Signal(int signal);
  // Blocks until it ends: the exit status, or 128 + the signal that ended it.
  int Wait();

 private:
  ChildProcess(std::string name, pid_t pid, Socket out, Socket errors);

  // Adds what is there to out_; false at its end. UNAVAILABLE with its last
  // words, where nothing comes until `latest`. CANCELLED.
  absl::StatusOr<bool> ReadSome(std::chrono::steady_clock::time_point latest);
  // UNAVAILABLE: what it did, and what it wrote last to standard error.
  absl::Status Failure(absl::string_view did) const;

  const std::string name_;
  const pid_t pid_;
  const Socket output_;
  const Socket errors_;
  const Socket interruption_;  // readable once there was one
  std::string out_;
  std::optional<int> status_ = {};  // waitpid's, once it has ended
};

}  // namespace outrider::bench

#endif  // OUTRIDER_BENCH_LOAD_CHILD_PROCESS_H_
