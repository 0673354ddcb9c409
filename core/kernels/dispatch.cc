// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/dispatch.h"

#include "core/base/check.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {
namespace {

Level AskCpu() {
#ifdef OUTRIDER_KERNELS_X86
  // These builtins also ask whether the operating system saves the registers.
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) {
    return Level::kPortable;
  }
  if (!__builtin_cpu_supports("avx512f") ||
      !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512vl")) {
    return Level::kAvx2;
  }
  return __builtin_cpu_supports("avx512bf16") ? Level::kAvx512Bf16
                                              : Level::kAvx512;
#else
  return Level::kPortable;
#endif
}

}  // namespace

Level BestLevel() {
  static const Level best = AskCpu();
  return best;
}

std::vector<Level> SupportedLevels() {
  std::vector<Level> levels;
  for (const Level level :
       {Level::kPortable, Level::kAvx2, Level::kAvx512, Level::kAvx512Bf16}) {
    if (level <= BestLevel()) levels.push_back(level);
  }
  return levels;
}

const char* LevelName(Level level) {
  switch (level) {
    case Level::kPortable:
      return "portable";
    case Level::kAvx2:
      return "avx2";
    case Level::kAvx512:
      return "avx512";
    case Level::kAvx512Bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

namespace cpu {

const KernelTable& TableFor(Level level) {
  OUTRIDER_CHECK(level <= BestLevel())
      << "kernels of level " << LevelName(level) << " on a CPU of level "
      << LevelName(BestLevel());
#ifdef OUTRIDER_KERNELS_X86
  switch (level) {
    case Level::kPortable:
      return kPortableTable;
    case Level::kAvx2:
      return kAvx2Table;
    case Level::kAvx512:
      return kAvx512Table;
    case Level::kAvx512Bf16:
      return kAvx512Bf16Table;
  }
#endif
  return kPortableTable;
}

}  // namespace cpu
}  // namespace outrider::kernels
