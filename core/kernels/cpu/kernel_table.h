// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_CPU_KERNEL_TABLE_H_
#define OUTRIDER_CORE_KERNELS_CPU_KERNEL_TABLE_H_

#include <cstddef>

#include "core/kernels/activation.h"
#include "core/kernels/attention.h"
#include "core/kernels/dispatch.h"
#include "core/kernels/norm.h"
#include "core/kernels/rope.h"

// The seam between the public functions, compiled for any CPU, and the kernels,
// compiled once for each level. Files compiled for a level must not emit code
// that the linker could give to the rest of the program: their functions are
// templates over a vector type of that level alone, or always inlined, and they
// call no inline function of the standard library.
#define OUTRIDER_KERNEL_INLINE inline __attribute__((always_inline))

namespace outrider::kernels::cpu {

// The order of packed weights. Outputs stand in blocks of 16, padded by zeros;
// blocks in groups of three or two (one only if there is but one block). Within
// a group, float32 is [in][outputs] and bfloat16 [steps][outputs][2], in either
// case steps of 4 bytes an output. Three blocks are the most of which nine rows
// have their sums in 32 registers; a single stream of all outputs of a group is
// what the memory delivers fastest.
struct PackedLayout {
  int num_blocks = 0;  // of 16 outputs
  int num_groups = 0;
  int num_wide = 0;  // groups of three; they come first

  static constexpr int kBlock = 16;

  static OUTRIDER_KERNEL_INLINE constexpr PackedLayout Of(int out) {
    const int num_blocks = (out + kBlock - 1) / kBlock;
    const int num_groups = (num_blocks + 2) / 3;
    const int rest = num_blocks - 2 * num_groups;
    return {num_blocks, num_groups, rest > 0 ? rest : 0};
  }
  // Pairs of k, in whole AMX tiles of 16: zeros after the last one.
  static OUTRIDER_KERNEL_INLINE constexpr int BFloat16Steps(int in) {
    return (in + 31) / 32 * 16;
  }
  OUTRIDER_KERNEL_INLINE constexpr int GroupOf(int block) const {
    return block < 3 * num_wide ? block / 3
                                : num_wide + (block - 3 * num_wide) / 2;
  }
  // It is the number of blocks before this group, too.
  OUTRIDER_KERNEL_INLINE constexpr int FirstBlock(int group) const {
    return group < num_wide ? 3 * group : 2 * group + num_wide;
  }
  OUTRIDER_KERNEL_INLINE constexpr int GroupSize(int group) const {
    if (group < num_wide) return 3;
    return num_blocks < 2 ? 1 : 2;
  }
};

// The widest vector of any level, in floats: what scratch rows are padded to.
inline constexpr int kMaxWidth = 16;

struct LinearTask {
  const float* x = nullptr;  // [num_rows, in]
  int num_rows = 0;
  int in = 0;
  int out = 0;
  const void* weight = nullptr;  // packed
  const float* bias = nullptr;   // [out], or null
  float* y = nullptr;            // [num_rows, out]
  bool add = false;
  float* scratch = nullptr;  // num_rows * (in + 31), on a whole cache line
};

// Has two steps, each of which threads may share: it writes to scratch the rows
// of x in the form that this level multiplies; then it computes groups of
// outputs, for all rows.
struct LinearKernel {
  void (*prepare)(const LinearTask& task, int first_row, int end_row);
  void (*multiply)(const LinearTask& task, int first_group, int end_group);
};

// Covers at most kAttentionRows rows of one session, and the heads that share
// one head of keys and values.
struct AttentionTask {
  const KvBlockId* blocks = nullptr;  // the session's table
  int first_position = 0;             // of row 0
  int num_rows = 0;
  int kv_head = 0;
  const float* queries = nullptr;  // [num_rows, num_heads, head_dim]
  int query_stride = 0;
  ConstElements keys = {};    // [blocks, kKvBlockLength, num_kv_heads,
  ConstElements values = {};  //  head_dim]
  int num_heads = 0;          // of all groups
  int num_kv_heads = 0;
  int head_dim = 0;
  int window = 0;
  float scale = 1.0f;
  float* out = nullptr;  // [num_rows, num_heads, head_dim]
};

// Memory for one task; heads are the num_heads / num_kv_heads ones.
struct AttentionScratch {
  int padded_dim = 0;        // head_dim, up to a multiple of kMaxWidth
  int score_stride = 0;      // floats, a multiple of kMaxWidth
  float* queries = nullptr;  // [rows, heads, padded_dim]
  float* sums = nullptr;     // [rows, heads, padded_dim]
  float* scores = nullptr;   // [rows, heads, score_stride]
  float* totals = nullptr;   // [rows, heads]
  float* tile = nullptr;     // [kTileKeys, padded_dim]
};
inline constexpr int kAttentionRows = 16;
inline constexpr int kTileKeys = 64;

// Rows that lie one after the other where they are copied to.
struct StoreTask {
  const float* from = nullptr;  // [num_rows, row_size]
  int from_stride = 0;
  int num_rows = 0;
  int row_size = 0;
  Elements to = {};  // [num_rows, row_size]
};

struct KernelTable {
  LinearKernel linear_float32;
  LinearKernel linear_bfloat16;
  void (*attention)(const AttentionTask& task, const AttentionScratch& scratch);
  void (*store_rows)(const StoreTask& task);
  void (*rms_norm)(const NormArgs& args);
  void (*layer_norm)(const NormArgs& args);
  void (*apply_rope)(const RopeArgs& args);
  void (*silu_mul)(const SiluMulArgs& args);
  void (*gelu_new)(float* x, size_t count);
  void (*exp)(const float* x, float* y, size_t count);
};

extern const KernelTable kPortableTable;
#ifdef OUTRIDER_KERNELS_X86
extern const KernelTable kAvx2Table;
extern const KernelTable kAvx512Table;
extern const KernelTable kAvx512Bf16Table;
extern const KernelTable kAmxBf16Table;
#endif

// Ends the process if this CPU cannot run `level`.
const KernelTable& TableFor(Level level);

}  // namespace outrider::kernels::cpu

#endif  // OUTRIDER_CORE_KERNELS_CPU_KERNEL_TABLE_H_
