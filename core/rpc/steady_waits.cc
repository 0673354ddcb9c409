// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/steady_waits.h"

#include <cstdarg>

#include "core/rpc/stand_in_syscall.h"

namespace {

timespec Now(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now;
}

}  // namespace

// NOLINTNEXTLINE(google-runtime-int,cert-dcl50-cpp): libc's
extern "C" long syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  const outrider::SyscallArguments call = outrider::ReadSyscallArguments(list);
  va_end(list);
  const timespec* const end = outrider::EndBySystemClock(number, call);
  if (end == nullptr) return outrider::CallNextSyscall(number, call);
  const timespec steady_end =
      outrider::SteadyEnd(*end, Now(CLOCK_REALTIME), Now(CLOCK_MONOTONIC));
  return outrider::CallNextSyscall(number,
                                   outrider::BySteadyClock(call, steady_end));
}
