// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_CUDA_MODEL_STEP_INPUTS_H_
#define OUTRIDER_CORE_CUDA_MODEL_STEP_INPUTS_H_

#include <compare>
#include <cstddef>
#include <limits>

#include "core/kernels/cuda/attention.h"
#include "core/model/causal_lm.h"

namespace outrider {

// How much one step of a pass may take.
struct StepLimits {
  int rows = 0;           // tokens
  int table_entries = 0;  // blocks of all its sessions: at least one's
  int group = 1;          // query heads that share a head of keys
  // Pairs that attention takes at once, as many at least as a tile can have: a
  // tile's are in one launch.
  int pairs = std::numeric_limits<int>::max();
  KvBlockId spare_block = 0;  // where rows that nobody asked for are written

  // How many tiles of attention `rows` rows can have.
  int tiles() const { return rows * kernels::cuda::NumTiles(1, group); }
};

// What decides which kernels are launched, and on how many blocks of threads.
struct StepShape {
  int num_rows = 0;
  int num_tiles = 0;
  int num_pairs = 0;  // of tiles and splits: see attention.h
  int num_logit_rows = 0;

  auto operator<=>(const StepShape&) const = default;
};

// What kernels read of a step's rows: arrays one after the other, at places
// that the limits alone decide.
struct StepArrays {
  int* tokens = nullptr;      // [rows]
  int* positions = nullptr;   // [rows]
  int* blocks = nullptr;      // [rows]: where keys and values go
  int* logit_rows = nullptr;  // [rows]: of which rows logits are wanted
  kernels::cuda::AttentionTile* tiles = nullptr;  // [tiles]
  int* tables = nullptr;                          // [table_entries]

  StepArrays() = default;
  StepArrays(const StepLimits& limits, void* memory);
  static size_t Bytes(const StepLimits& limits);
};

// Fills a step with sessions' tokens until it is full. Its memory is the
// caller's, and is what goes to the device, in one copy.
class StepInputs {
 public:
  StepInputs(const StepLimits& limits, void* memory)
      : limits_(limits), arrays_(limits, memory), memory_(memory) {}

  // Adds tokens of an extension from the `first`-th on, and its table with room
  // for those that are drawn after them. How many it took: none where the step
  // is too full, some at least where it is empty.
  int Add(const Extension& extension, int first);
  // Adds rows, tiles, pairs and wanted logits, of which nothing comes, up to
  // these numbers.
  void PadTo(const StepShape& shape);
  void Clear() {
    shape_ = {};
    num_table_entries_ = 0;
  }

  const StepShape& shape() const { return shape_; }
  bool empty() const { return shape_.num_rows == 0; }
  const void* memory() const { return memory_; }
  // How many of them were filled, all at the start of the memory.
  size_t bytes() const;

 private:
  // Tiles of a session whose positions are to end there.
  void AddTiles(const kernels::cuda::AttentionTile& rows, int end);

  const StepLimits limits_;
  const StepArrays arrays_;
  void* const memory_;
  StepShape shape_ = {};
  int num_table_entries_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_CUDA_MODEL_STEP_INPUTS_H_
