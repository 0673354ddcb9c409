// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_RUN_TASK_H_
#define OUTRIDER_CORE_TESTING_RUN_TASK_H_

#include <optional>
#include <utility>

#include "core/base/check.h"
#include "core/base/task.h"

namespace outrider::testing {

template <typename T>
Task<void> StoreResult(Task<T> task, std::optional<T>& result) {
  result.emplace(co_await task);
}

// Runs a task that waits for nothing but other such tasks.
template <typename T>
T RunTask(Task<T> task) {
  std::optional<T> result;
  StartDetached(StoreResult(std::move(task), result));
  OUTRIDER_CHECK(result.has_value()) << "the task waits for somebody";
  return *std::move(result);
}

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_RUN_TASK_H_
