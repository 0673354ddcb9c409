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

// Cuts `memory`, grown as needed, into what a task needs.
cpu::AttentionScratch MakeScratch(const cpu::AttentionTask& task,
                                  std::vector<float>& memory) {
  const int last_length = task.first_position + task.num_rows;
  const int longest =
      task.window > 0 ? std::min(task.window, last_length) : last_length;
  cpu::AttentionScratch scratch = {.padded_dim = RoundUp(task.head_dim),
                                   .score_stride = RoundUp(longest)};

  const size_t num_queries =
      static_cast<size_t>(task.num_rows) * (task.num_heads / task.num_kv_heads);
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

// Calls body(segment, its first row in the pass).
template <class Body>
void ForEachSegment(absl::Span<const KvSegment> segments, const Body& body) {
  int row = 0;
  for (const KvSegment& segment : segments) {
    body(segment, row);
    row += segment.num_rows;
  }
}

// The element of a layer's blocks at which a position's `size` ones begin.
size_t Offset(const KvSegment& segment, int position, int size) {
  const auto block =
      static_cast<size_t>(segment.blocks[position / kKvBlockLength]);
  return (block * kKvBlockLength + position % kKvBlockLength) * size;
}

Elements From(const Elements& elements, size_t offset) {
  if (elements.type == ElementType::kBFloat16) {
    return static_cast<BFloat16*>(elements.data) + offset;
  }
  return static_cast<float*>(elements.data) + offset;
}

// Rows of one session that go over its keys together; kv_head is still open.
std::vector<cpu::AttentionTask> CutIntoChunks(const AttentionArgs& args) {
  const size_t out_stride = static_cast<size_t>(args.num_heads) * args.head_dim;
  std::vector<cpu::AttentionTask> chunks;
  ForEachSegment(args.segments, [&](const KvSegment& segment, int first_row) {
    for (int row = 0; row < segment.num_rows; row += cpu::kAttentionRows) {
      chunks.push_back(
          {.blocks = segment.blocks,
           .first_position = segment.first_position + row,
           .num_rows = std::min(cpu::kAttentionRows, segment.num_rows - row),
           .queries = args.queries + static_cast<size_t>(args.query_stride) *
                                         (first_row + row),
           .query_stride = args.query_stride,
           .keys = args.keys,
           .values = args.values,
           .num_heads = args.num_heads,
           .num_kv_heads = args.num_kv_heads,
           .head_dim = args.head_dim,
           .window = args.window,
           .scale = args.scale,
           .out = args.out + out_stride * (first_row + row)});
    }
  });
  return chunks;
}

// What is worth another thread's while: some 2 us of work.
constexpr double kLeastProducts = 65536;

// Roughly the number of multiplications that all rows take.
double NumProducts(const AttentionArgs& args) {
  double num_keys = 1;
  for (const KvSegment& segment : args.segments) {
    const int length = segment.first_position + segment.num_rows;
    num_keys += double(segment.num_rows) *
                (args.window > 0 ? std::min(args.window, length) : length);
  }
  return 2.0 * num_keys * args.num_heads * args.head_dim;
}

}  // namespace

void Attention(const AttentionArgs& args, const Execution& execution) {
  OUTRIDER_CHECK(args.keys.type == args.values.type &&
                 args.num_heads % args.num_kv_heads == 0)
      << args.num_heads << " heads over " << args.num_kv_heads;
  const auto attention = cpu::TableFor(execution.level()).attention;
  const std::vector<cpu::AttentionTask> chunks = CutIntoChunks(args);
  const int num_tasks = static_cast<int>(chunks.size()) * args.num_kv_heads;
  const int least_tasks =
      static_cast<int>(num_tasks * kLeastProducts / NumProducts(args)) + 1;
  execution.ForRanges(num_tasks, least_tasks, [&](int begin, int end) {
    static thread_local std::vector<float> memory;
    for (int i = begin; i < end; ++i) {
      cpu::AttentionTask task = chunks[i / args.num_kv_heads];
      task.kv_head = i % args.num_kv_heads;
      attention(task, MakeScratch(task, memory));
    }
  });
}

void StoreKv(const StoreKvArgs& args, const Execution& execution) {
  const cpu::KernelTable& table = cpu::TableFor(execution.level());
  ForEachSegment(args.segments, [&](const KvSegment& segment, int first_row) {
    for (int row = 0; row < segment.num_rows;) {
      const int position = segment.first_position + row;
      const int num_rows = std::min(segment.num_rows - row,
                                    kKvBlockLength - position % kKvBlockLength);
      table.store_rows(
          {.from = args.from +
                   static_cast<size_t>(args.from_stride) * (first_row + row),
           .from_stride = args.from_stride,
           .num_rows = num_rows,
           .row_size = args.row_size,
           .to = From(args.to, Offset(segment, position, args.row_size))});
      row += num_rows;
    }
  });
}

}  // namespace outrider::kernels
