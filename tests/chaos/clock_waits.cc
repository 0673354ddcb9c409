// SPDX-License-Identifier: Apache-2.0
// What libfaketime leaves to the kernel, whose clock nobody has set: waits
// until a time of the clock that may be set, as Abseil's and hence gRPC's
// mutexes have them. Loaded beside it, this ends them by the clock that it
// shows, also where that is set while they wait.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <ctime>

#include "core/rpc/stand_in_syscall.h"

namespace {

using std::chrono::nanoseconds;

// How late a wait may notice that the clock was set.
constexpr nanoseconds kSlice = std::chrono::milliseconds(5);

nanoseconds FromTimespec(const timespec& time) {
  return std::chrono::seconds(time.tv_sec) + nanoseconds(time.tv_nsec);
}

nanoseconds Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return FromTimespec(now);
}

}  // namespace

// NOLINTNEXTLINE(google-runtime-int,cert-dcl50-cpp): libc's
extern "C" long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  const outrider::SyscallArguments call = outrider::ReadSyscallArguments(list);
  va_end(list);
  const timespec* const shown_end = outrider::EndBySystemClock(number, call);
  if (shown_end == nullptr) return outrider::CallNextSyscall(number, call);
  const nanoseconds end = FromTimespec(*shown_end);
  while (true) {
    const nanoseconds left = end - Now(CLOCK_REALTIME);
    if (left <= nanoseconds(0)) {
      errno = ETIMEDOUT;
      return -1;
    }
    const nanoseconds until = Now(CLOCK_MONOTONIC) + std::min(left, kSlice);
    const timespec slice = {.tv_sec = until.count() / 1'000'000'000,
                            .tv_nsec = until.count() % 1'000'000'000};
    // NOLINTNEXTLINE(google-runtime-int)
    const long result =
        outrider::CallNextSyscall(number, outrider::BySteadyClock(call, slice));
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
}
