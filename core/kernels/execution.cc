// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/execution.h"

#include <algorithm>
#include <cstdint>

namespace outrider::kernels {
namespace {

// More parts than threads, so that one that is late, or shares its core, takes
// fewer of them, and none waits long for another's last part; each part's
// weights are one stream of their own, which wants some length.
constexpr int kPartsPerThread = 8;

}  // namespace

void Execution::ForRanges(
    int count, int least,
    absl::FunctionRef<void(int begin, int end)> body) const {
  const int num_threads = pool_ == nullptr ? 1 : pool_->num_threads();
  const int num_parts =
      num_threads == 1
          ? 1
          : std::min(count / std::max(least, 1), num_threads * kPartsPerThread);
  if (num_parts <= 1) {
    if (count > 0) body(0, count);
    return;
  }
  const auto bound = [&](int part) {
    return static_cast<int>(int64_t{count} * part / num_parts);
  };
  pool_->Run(num_parts, [&](int part) { body(bound(part), bound(part + 1)); });
}

}  // namespace outrider::kernels
