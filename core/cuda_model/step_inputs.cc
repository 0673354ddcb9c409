// SPDX-License-Identifier: Apache-2.0
#include "core/cuda_model/step_inputs.h"

#include <algorithm>

#include "core/base/check.h"
#include "core/base/kv_block.h"

namespace outrider {

using kernels::cuda::AttentionTile;

static_assert(kKvBlockLength == kernels::cuda::kBlockLength);
static_assert(alignof(AttentionTile) == alignof(int));

StepArrays::StepArrays(const StepLimits& limits, void* memory)
    : tokens(static_cast<int*>(memory)),
      positions(tokens + limits.rows),
      blocks(positions + limits.rows),
      logit_rows(blocks + limits.rows),
      tiles(reinterpret_cast<AttentionTile*>(logit_rows + limits.rows)),
      tables(reinterpret_cast<int*>(tiles + limits.tiles())) {}

size_t StepArrays::Bytes(const StepLimits& limits) {
  return sizeof(int) * (4 * static_cast<size_t>(limits.rows) +
                        static_cast<size_t>(limits.table_entries)) +
         sizeof(AttentionTile) * static_cast<size_t>(limits.tiles());
}

int StepInputs::Add(const Extension& extension, int first) {
  const int num_tokens = static_cast<int>(extension.tokens.size());
  const int count =
      std::min(limits_.rows - shape_.num_rows, num_tokens - first);
  const int first_position = extension.cached_length + first;
  const int end = first_position + count;
  const int num_blocks = NumKvBlocks(end + extension.max_drawn);
  if (count <= 0 || num_table_entries_ + num_blocks > limits_.table_entries) {
    return 0;
  }
  std::copy_n(extension.blocks.begin(), num_blocks,
              arrays_.tables + num_table_entries_);
  AddTiles({.first_table_entry = num_table_entries_,
            .first_row = shape_.num_rows,
            .num_rows = count,
            .first_position = first_position},
           end + extension.max_drawn);
  for (int i = 0; i < count; ++i) {
    const int row = shape_.num_rows++;
    const int position = first_position + i;
    arrays_.tokens[row] = extension.tokens[first + i];
    arrays_.positions[row] = position;
    arrays_.blocks[row] = extension.blocks[position / kKvBlockLength];
    if (first + i >= num_tokens - extension.num_rows) {
      arrays_.logit_rows[shape_.num_logit_rows++] = row;
    }
  }
  num_table_entries_ += num_blocks;
  return count;
}

void StepInputs::AddTiles(const AttentionTile& rows, int end) {
  const int num_splits = kernels::cuda::NumSplits(end);
  const int num_tiles = kernels::cuda::NumTiles(rows.num_rows, limits_.group);
  OUTRIDER_CHECK(num_splits <= limits_.pairs) << end << " positions";
  for (int done = 0; done < num_tiles;) {
    int room = limits_.pairs - shape_.num_pairs % limits_.pairs;
    if (room < num_splits) {
      // The rest of the launch is nobody's.
      shape_.num_pairs += room;
      room = limits_.pairs;
    }
    const int num_beside = std::min(num_tiles - done, room / num_splits);
    for (int i = 0; i < num_beside; ++i) {
      AttentionTile& tile = arrays_.tiles[shape_.num_tiles++] = rows;
      tile.first_query = (done + i) * kernels::cuda::kTileQueries;
      tile.first_pair = shape_.num_pairs + i;
      tile.num_beside = num_beside;
    }
    shape_.num_pairs += num_beside * num_splits;
    done += num_beside;
  }
}

void StepInputs::PadTo(const StepShape& shape) {
  for (int& row = shape_.num_rows; row < shape.num_rows; ++row) {
    arrays_.tokens[row] = 0;
    arrays_.positions[row] = 0;
    arrays_.blocks[row] = limits_.spare_block;
  }
  while (shape_.num_tiles < shape.num_tiles) {
    arrays_.tiles[shape_.num_tiles++] = {.first_pair = shape_.num_pairs};
  }
  while (shape_.num_logit_rows < shape.num_logit_rows) {
    arrays_.logit_rows[shape_.num_logit_rows++] = 0;
  }
  shape_.num_pairs = std::max(shape_.num_pairs, shape.num_pairs);
}

size_t StepInputs::bytes() const {
  const auto* end =
      reinterpret_cast<const char*>(arrays_.tables + num_table_entries_);
  return static_cast<size_t>(end - static_cast<const char*>(memory_));
}

}  // namespace outrider
