// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_EXECUTION_H_
#define OUTRIDER_CORE_KERNELS_EXECUTION_H_

#include <cstddef>

#include "absl/functional/function_ref.h"
#include "core/kernels/dispatch.h"
#include "core/kernels/thread_pool.h"

namespace outrider::kernels {

// How kernels run: with which instructions, on which threads. Results depend on
// the level, and never on the threads. Cheap to copy; the pool must outlive it.
class Execution {
 public:
  // A null pool is the calling thread alone.
  Execution(Level level, ThreadPool* pool = nullptr)
      : level_(level), pool_(pool) {}

  Level level() const { return level_; }

  // Calls body(begin, end), perhaps at the same time, for ranges that together
  // are [0, count), none shorter than `least` unless count is: what less is not
  // worth another thread's while.
  void ForRanges(int count, int least,
                 absl::FunctionRef<void(int begin, int end)> body) const;

  // The same for rows of `row_size` elements each, with which little is done.
  void ForRows(int num_rows, size_t row_size,
               absl::FunctionRef<void(int begin, int end)> body) const {
    ForRanges(num_rows, static_cast<int>(kLeastElements / (row_size + 1)) + 1,
              body);
  }

 private:
  // Some 2 us of norms, activations and the like.
  static constexpr size_t kLeastElements = 8192;

  Level level_;
  ThreadPool* pool_;
};

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_EXECUTION_H_
