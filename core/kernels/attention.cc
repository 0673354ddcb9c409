// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/check.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {
namespace {

int RoundUp(int x) {
  return (x + cpu::kMaxWidth - 1) / cpu::kMaxWidth * cpu::kMaxWidth;
}

// Cuts `memory`, grown as needed, into what a call for `num_rows` rows needs.
cpu::AttentionScratch MakeScratch(const AttentionArgs& args, int num_rows,
                                  std::vector<float>& memory) {
  const int last_length = args.first_position + args.num_rows;
  const int longest =
      args.window > 0 ? std::min(args.window, last_length) : last_length;
  cpu::AttentionScratch scratch = {.padded_dim = RoundUp(args.head_dim),
                                   .score_stride = RoundUp(longest)};

  const size_t num_queries =
      static_cast<size_t>(num_rows) * (args.num_heads / args.num_kv_heads);
  const size_t vectors_size = num_queries * scratch.padded_dim;
  const size_t scores_size = num_queries * scratch.score_stride;
  const size_t tile_size =
      static_cast<size_t>(cpu::kTileKeys) * scratch.padded_dim;
  const size_t size = 2 * vectors_size + scores_size + num_queries + tile_size;
  // Whole cache lines, lest every vector lies across two of them.
  constexpr size_t kLine = 64;
  if (memory.size() < size + kLine / sizeof(float)) {
    memory.resize(size + kLine / sizeof(float));
  }
  const size_t past_line =
      reinterpret_cast<uintptr_t>(memory.data()) % kLine / sizeof(float);
  scratch.queries = memory.data() + (kLine / sizeof(float) - past_line);
  scratch.sums = scratch.queries + vectors_size;
  scratch.scores = scratch.sums + vectors_size;
  scratch.tile = scratch.scores + scores_size;
  scratch.totals = scratch.tile + tile_size;
  return scratch;
}

}  // namespace

void Attention(const AttentionArgs& args, Level level) {
  OUTRIDER_CHECK(args.keys.type == args.values.type &&
                 args.num_heads % args.num_kv_heads == 0)
      << args.num_heads << " heads over " << args.num_kv_heads;
  const cpu::KernelTable& table = cpu::TableFor(level);
  static thread_local std::vector<float> memory;
  const size_t out_stride = static_cast<size_t>(args.num_heads) * args.head_dim;

  for (int row = 0; row < args.num_rows; row += cpu::kAttentionRows) {
    AttentionArgs some = args;
    some.queries += static_cast<size_t>(args.query_stride) * row;
    some.out += out_stride * row;
    some.first_position += row;
    some.num_rows = std::min(cpu::kAttentionRows, args.num_rows - row);
    table.attention(some, MakeScratch(some, some.num_rows, memory));
  }
}

void StoreKv(const StoreKvArgs& args, Level level) {
  cpu::TableFor(level).store_kv(args);
}

}  // namespace outrider::kernels
