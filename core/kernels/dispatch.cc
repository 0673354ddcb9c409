// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/dispatch.h"

#ifdef OUTRIDER_KERNELS_X86
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "core/base/check.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {
namespace {

#ifdef OUTRIDER_KERNELS_X86
// Tiles are state that Linux saves only for processes that have asked for it.
bool MayUseTiles() {
  unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
  constexpr unsigned int kTiles = 1u << 24, kBFloat16 = 1u << 22;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0 ||
      (edx & kTiles) == 0 || (edx & kBFloat16) == 0) {
    return false;
  }
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}
#endif

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
  if (!__builtin_cpu_supports("avx512bf16")) return Level::kAvx512;
  return MayUseTiles() ? Level::kAmxBf16 : Level::kAvx512Bf16;
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
  for (const Level level : {Level::kPortable, Level::kAvx2, Level::kAvx512,
                            Level::kAvx512Bf16, Level::kAmxBf16}) {
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
    case Level::kAmxBf16:
      return "amx_bf16";
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
    case Level::kAmxBf16:
      return kAmxBf16Table;
  }
#endif
  return kPortableTable;
}

}  // namespace cpu
}  // namespace outrider::kernels
