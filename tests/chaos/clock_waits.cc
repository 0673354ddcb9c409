// SPDX-License-Identifier: Apache-2.0
// What libfaketime leaves to the kernel, whose clock nobody has set: waits
// until a time of the clock that may be set, as Abseil's and hence gRPC's
// mutexes have them. Loaded beside it, this ends them by the clock that it
// shows, also where that is set while they wait.
#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <ctime>

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

using Syscall = long (*)(long, ...);  // NOLINT(google-runtime-int): libc's

// A static with a guard might itself wait by syscall().
Syscall TheKernels() {
  static std::atomic<Syscall> found = nullptr;
  if (found == nullptr) {
    found = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  }
  return found;
}

}  // namespace

// NOLINTNEXTLINE(google-runtime-int,cert-dcl50-cpp): libc's
extern "C" long syscall(long number, ...) {
  const Syscall kernel = TheKernels();
  long arguments[6];  // NOLINT(google-runtime-int)
  va_list list;
  va_start(list, number);
  for (auto& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  auto& [word, operation, value, timeout, other, bits] = arguments;

  constexpr int kWaitUntil = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  if (number != SYS_futex || timeout == 0 ||
      (operation & ~FUTEX_PRIVATE_FLAG) != kWaitUntil) {
    return kernel(number, word, operation, value, timeout, other, bits);
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as the kernel has it
  const nanoseconds end = FromTimespec(*reinterpret_cast<timespec*>(timeout));
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
    const long result = kernel(number, word, operation & ~FUTEX_CLOCK_REALTIME,
                               value, &slice, other, bits);
    if (result == 0 || errno != ETIMEDOUT) return result;
  }
}
