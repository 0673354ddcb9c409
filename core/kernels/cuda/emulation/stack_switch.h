// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_STACK_SWITCH_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_STACK_SWITCH_H_

#include <cstddef>

namespace outrider::kernels::cuda::emulation {

// A stack of its own, behind a page that nobody may touch.
class Stack {
 public:
  static constexpr size_t kBytes = 256 << 10;

  // Stacks whose numbers follow on each other begin at other places in a cache.
  explicit Stack(int number);
  ~Stack();
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  char* bottom() const { return bottom_; }
  char* top() const { return top_; }
  // What SwitchStack needs to start `entry`, which never returns.
  void* Start(void (*entry)()) const;

 private:
  char* bottom_;
  char* top_;
};

// Leaves what runs now at *here, goes on where `there` was left, and returns
// when somebody switches to *here. No system call, unlike swapcontext(3): a
// test switches some ten million times.
extern "C" void OutriderSwitchStack(void** here, void* there);

}  // namespace outrider::kernels::cuda::emulation

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_STACK_SWITCH_H_
