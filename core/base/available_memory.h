// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_AVAILABLE_MEMORY_H_
#define OUTRIDER_CORE_BASE_AVAILABLE_MEMORY_H_

#include <cstdint>
#include <string>

namespace outrider {

// Bytes that this process could still allocate: what the machine has available,
// or less where its memory cgroup or one above it (of version 1 or 2) leaves
// less. Files in the page cache count as available. 0 where nothing is known.
// `root` stands before /proc and /sys, for tests.
int64_t AvailableMemory(const std::string& root = "");

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_AVAILABLE_MEMORY_H_
