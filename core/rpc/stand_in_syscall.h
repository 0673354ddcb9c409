// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_RPC_STAND_IN_SYSCALL_H_
#define OUTRIDER_CORE_RPC_STAND_IN_SYSCALL_H_

#include <dlfcn.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <atomic>
#include <cstdarg>
#include <ctime>

#include "absl/base/attributes.h"

namespace outrider {

// What a stand-in for libc's syscall() is made of: it looks at futex waits, and
// hands all calls on. One is linked into programs, another is preloaded before
// them. All is static, as each has its own next one: an inline function's would
// be one variable for both, and a call would never come to its end.

// Has as many as a call may have, named as futex() has them.
// NOLINTBEGIN(google-runtime-int): libc's
struct SyscallArguments {
  long word = 0;
  long operation = 0;
  long value = 0;
  long timeout = 0;
  long other = 0;
  long bits = 0;
};

using Syscall = long (*)(long, ...);

// Reads all of them, also of a call that has fewer: what is read then is handed
// on unseen. The address sanitizer would call it an overflow.
ABSL_ATTRIBUTE_NO_SANITIZE_ADDRESS static inline SyscallArguments
ReadSyscallArguments(va_list list) {
  SyscallArguments call;
  for (long* argument : {&call.word, &call.operation, &call.value,
                         &call.timeout, &call.other, &call.bits}) {
    // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): begun by the caller
    *argument = va_arg(list, long);
  }
  return call;
}

// The stand-in that comes next makes it, or libc.
static inline long CallNextSyscall(long number, const SyscallArguments& call) {
  // Not a static that is guarded, as who waits for one may do so by syscall().
  static std::atomic<Syscall> next = nullptr;
  if (next == nullptr) {
    next = reinterpret_cast<Syscall>(dlsym(RTLD_NEXT, "syscall"));
  }
  return next.load()(number, call.word, call.operation, call.value,
                     call.timeout, call.other, call.bits);
}
// NOLINTEND(google-runtime-int)

// The end of a wait by the clock that may be set, as Abseil's and hence gRPC's
// mutexes have them; null: the call is no such wait.
static inline const timespec* EndBySystemClock(
    long number, const SyscallArguments& call) {  // NOLINT(google-runtime-int)
  constexpr int kWaitUntil = FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME;
  const bool waits_until = (call.operation & ~FUTEX_PRIVATE_FLAG) == kWaitUntil;
  if (number != SYS_futex || !waits_until) return nullptr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as the kernel has it
  return reinterpret_cast<const timespec*>(call.timeout);
}

// The same wait by the clock that nobody sets, to this time of it, which must
// outlive the call.
static inline SyscallArguments BySteadyClock(SyscallArguments call,
                                             const timespec& end) {
  // NOLINTNEXTLINE(google-runtime-int)
  call.timeout = reinterpret_cast<long>(&end);
  call.operation &= ~FUTEX_CLOCK_REALTIME;
  return call;
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_RPC_STAND_IN_SYSCALL_H_
