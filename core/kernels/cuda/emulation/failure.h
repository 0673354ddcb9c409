// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CUDA_EMULATION_FAILURE_H_
#define OUTRIDER_CORE_KERNELS_CUDA_EMULATION_FAILURE_H_

#include <atomic>
#include <string>
#include <utility>

#include "core/base/mutex.h"

namespace outrider::kernels::cuda::emulation {

// What went wrong first, until somebody is told. Thread-safe: while one thread
// runs kernels another one may ask.
class Failure {
 public:
  bool is_empty() const { return is_empty_; }
  void Note(std::string failure) {
    MutexLock lock(mu_);
    if (is_empty_) failure_ = std::move(failure);
    is_empty_ = false;
  }
  // Makes that what goes wrong in a launch to come, after so many others.
  void NoteAfter(int num_launches, std::string failure) {
    MutexLock lock(mu_);
    num_before_ = num_launches;
    to_come_ = std::move(failure);
  }
  void CountLaunch() {
    MutexLock lock(mu_);
    if (num_before_ < 0 || num_before_-- > 0) return;
    if (is_empty_) failure_ = to_come_;
    is_empty_ = false;
  }
  // Nothing, where nothing did.
  std::string Take() {
    MutexLock lock(mu_);
    is_empty_ = true;
    return std::exchange(failure_, {});
  }

 private:
  Mutex mu_;
  std::atomic<bool> is_empty_ = true;
  std::string failure_ ABSL_GUARDED_BY(mu_);
  int num_before_ ABSL_GUARDED_BY(mu_) = -1;  // launches; -1: none is to come
  std::string to_come_ ABSL_GUARDED_BY(mu_);
};

// The device's.
Failure& TheFailure();

}  // namespace outrider::kernels::cuda::emulation

#endif  // OUTRIDER_CORE_KERNELS_CUDA_EMULATION_FAILURE_H_
