// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_FREED_MEMORY_H_
#define OUTRIDER_CORE_BASE_FREED_MEMORY_H_

#include <malloc.h>

#include "core/base/available_cores.h"

namespace outrider {

// Makes the process keep what it frees: up to 256 MiB at the end of a heap, and
// all that lies before something that is still used. A row of a large
// vocabulary is a megabyte of doubles, several times a token: given back to the
// system in between, its fresh pages cost more than the arithmetic on it
// (bench/micro/sampling_benchmark.cc). And it keeps it in one heap a core, not
// in glibc's eight: what is freed in one is of no use to threads of another, so
// that over many sessions each grows to the most that it ever needed. A main
// calls this before it starts threads.
inline void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_ARENA_MAX, AvailableCores());
}

// Gives all of it back to the system, wherever it lies: after work that takes
// far more than what follows.
inline void ReturnFreedMemory() { malloc_trim(0); }

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_FREED_MEMORY_H_
