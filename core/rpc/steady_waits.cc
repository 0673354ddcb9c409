// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/steady_waits.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdarg>

#include "absl/base/attributes.h"

namespace {

using Syscall = long (*)(long, ...);  // NOLINT(google-runtime-int): libc's

// Not a static that is guarded, as who waits for one may do so by syscall().
Syscall TheNext() {
  static std::atomic<Syscall> found = nullptr;
  if (found == nullptr) {
    found = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  }
  return found;
}

timespec Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now;
}

}  // namespace

// As many arguments are read as a call may have, and handed on unseen where it
// has fewer: the address sanitizer would call that an overflow.
// NOLINTNEXTLINE(google-runtime-int,cert-dcl50-cpp): libc's
extern "C" ABSL_ATTRIBUTE_NO_SANITIZE_ADDRESS long syscall(long number, ...) {
  long arguments[6];  // NOLINT(google-runtime-int)
  va_list list;
  va_start(list, number);
  for (auto& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  auto& [word, operation, value, timeout, other, bits] = arguments;

  constexpr int kWaitUntil = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  timespec steady_end;
  if (number == SYS_futex && timeout != 0 &&
      (operation & ~FUTEX_PRIVATE_FLAG) == kWaitUntil) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): as the kernel has it
    const auto* const end = reinterpret_cast<const timespec*>(timeout);
    steady_end =
        outrider::SteadyEnd(*end, Now(CLOCK_REALTIME), Now(CLOCK_MONOTONIC));
    timeout = reinterpret_cast<long>(&steady_end);  // NOLINT
    operation &= ~FUTEX_CLOCK_REALTIME;
  }
  return TheNext()(number, word, operation, value, timeout, other, bits);
}
