// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_KERNELS_LINEAR_H_
#define OUTRIDER_CORE_KERNELS_LINEAR_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "core/kernels/bfloat16.h"
#include "core/kernels/execution.h"
#include "core/kernels/weight_memory.h"

namespace outrider::kernels {

// Some rows of a weight matrix, as a checkpoint has them.
struct WeightRows {
  ConstElements elements = {};  // [num_rows, in], contiguous
  int num_rows = 0;
};

// A weight matrix [out, in] in the order in which Linear reads it, so that
// every pass is one stream through memory: five rows of x cost hardly more than
// one, while with the checkpoint's layout they cost two to three times as much
// (bfloat16, on a Zen 5). Owns its copy: the caller may free the original.
// Immutable, hence thread-safe.
class PackedWeight {
 public:
  // Stacks `parts` (queries, keys and values; gate and up), all of one type, in
  // `memory`, or where that is null in memory of its own.
  PackedWeight(const std::vector<WeightRows>& parts, int in,
               WeightMemory* memory = nullptr);
  PackedWeight(PackedWeight&&) = default;
  PackedWeight& operator=(PackedWeight&&) = default;

  ElementType type() const { return type_; }
  int out() const { return out_; }
  int in() const { return in_; }
  size_t num_bytes() const { return num_bytes_; }
  const void* data() const { return data_.get(); }

  // Copies one row of the matrix to `to`, [in] float32: an output head that is
  // also the embedding need not be kept twice.
  void CopyRow(int row, float* to) const;

 private:
  ElementType type_ = ElementType::kFloat32;
  int out_ = 0;
  int in_ = 0;
  size_t num_bytes_ = 0;
  std::shared_ptr<void> data_;
};

enum class Output { kReplace, kAdd };

struct LinearArgs {
  const float* x = nullptr;  // [num_rows, in]
  int num_rows = 0;
  const PackedWeight* weight = nullptr;  // [out, in]
  const float* bias = nullptr;           // [out], or null
  float* y = nullptr;                    // [num_rows, out]; not x
  Output output = Output::kReplace;      // or add to what y holds: a residual
};

// y[m, n] = sum over k of x[m, k] * weight[n, k], plus bias[n]. With bfloat16
// weights x is rounded to bfloat16 too; sums are float32, k ascending.
//
// A row of y depends, bit for bit, on its own row of x only: neither on
// num_rows nor on its place among the rows, nor on the number of threads.
void Linear(const LinearArgs& args, const Execution& execution);

}  // namespace outrider::kernels

#endif  // OUTRIDER_CORE_KERNELS_LINEAR_H_
