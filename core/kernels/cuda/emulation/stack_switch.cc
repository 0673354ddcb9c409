// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/cuda/emulation/stack_switch.h"

#include <sys/mman.h>

#include <cstdint>

#include "core/base/check.h"

// Registers that a call preserves go onto the stack that is left; all others
// the compiler has saved around the call.
#if defined(__x86_64__)
asm(R"(
.text
.globl OutriderSwitchStack
.type OutriderSwitchStack, @function
OutriderSwitchStack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size OutriderSwitchStack, .-OutriderSwitchStack
)");
#elif defined(__aarch64__)
asm(R"(
.text
.globl OutriderSwitchStack
.type OutriderSwitchStack, %function
OutriderSwitchStack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size OutriderSwitchStack, .-OutriderSwitchStack
)");
#else
#error "the emulation of CUDA kernels switches stacks on x86-64 and aarch64"
#endif

namespace outrider::kernels::cuda::emulation {
namespace {

constexpr size_t kGuardBytes = 16 << 10;
// Stacks are as far apart as a cache repeats its places. Were their tops all at
// the same place in them, those of a block would put each other out of the
// cache.
constexpr size_t kNumTops = 32, kBetweenTops = 9 * 64;

}  // namespace

Stack::Stack(int number) {
  void* memory = mmap(nullptr, kGuardBytes + kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  OUTRIDER_CHECK(memory != MAP_FAILED) << "no memory for a thread's stack";
  OUTRIDER_CHECK(mprotect(memory, kGuardBytes, PROT_NONE) == 0) << "mprotect";
  bottom_ = static_cast<char*>(memory) + kGuardBytes;
  top_ = bottom_ + kBytes - number % kNumTops * kBetweenTops;
}

Stack::~Stack() { munmap(bottom_ - kGuardBytes, kGuardBytes + kBytes); }

void* Stack::Start(void (*entry)()) const {
  auto* top = reinterpret_cast<uint64_t*>(top_);
#if defined(__x86_64__)
  // Six registers, then where `ret` goes; a function finds the stack eight
  // bytes off a multiple of 16, as if it had been called.
  top[-1] = 0;
  top[-2] = reinterpret_cast<uint64_t>(entry);
  for (int i = 3; i <= 8; ++i) top[-i] = 0;
  return top - 8;
#else
  for (int i = 1; i <= 20; ++i) top[-i] = 0;
  top[-20 + 11] = reinterpret_cast<uint64_t>(entry);  // x30
  return top - 20;
#endif
}

}  // namespace outrider::kernels::cuda::emulation
