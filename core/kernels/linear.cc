// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/linear.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>

#include "core/base/check.h"
#include "core/kernels/cpu/kernel_table.h"

namespace outrider::kernels {
namespace {

// A block's step is one cache line: aligned, no vector crosses one.
constexpr std::align_val_t kAlignment{64};

// Rows that go over the weights together; bounds the scratch memory.
constexpr int kMaxRows = 256;

// What is worth another thread's while: some 2 us of work. Bytes are those of
// weights, prepared ones the elements of x.
constexpr size_t kLeastBytes = size_t{48} << 10;
constexpr int kLeastPrepared = 16384;

// Memory of the calling thread, of at least `size` floats, on a cache line.
float* Scratch(size_t size) {
  static thread_local std::vector<float> memory;
  constexpr size_t kLine = 64 / sizeof(float);
  if (memory.size() < size + kLine) memory.resize(size + kLine);
  const size_t past_line =
      reinterpret_cast<uintptr_t>(memory.data()) / sizeof(float) % kLine;
  return memory.data() + (kLine - past_line);
}

// bfloat16 shares 32 bits between two neighbours along k.
int ValuesPerStep(ElementType type) {
  return type == ElementType::kBFloat16 ? 2 : 1;
}

size_t NumSteps(ElementType type, int in) {
  return static_cast<size_t>(type == ElementType::kBFloat16
                                 ? cpu::PackedLayout::BFloat16Steps(in)
                                 : in);
}

// Where the elements of one row of a matrix stand in the packed order.
class PackedRow {
 public:
  PackedRow(const PackedWeight& weight, int row)
      : values_(ValuesPerStep(weight.type())) {
    constexpr int kBlock = cpu::PackedLayout::kBlock;
    const auto layout = cpu::PackedLayout::Of(weight.out());
    const int group = layout.GroupOf(row / kBlock);
    const int block = layout.FirstBlock(group);
    step_stride_ = layout.GroupSize(group) * kBlock * values_;
    first_ = (NumSteps(weight.type(), weight.in()) * block * kBlock +
              (row - block * kBlock)) *
             values_;
  }

  size_t operator[](int k) const {
    return first_ + static_cast<size_t>(k / values_) * step_stride_ +
           k % values_;
  }

 private:
  int values_;
  int step_stride_;
  size_t first_;
};

template <class T>
void PackRow(const T* from, const PackedWeight& weight, int row, void* packed) {
  const PackedRow place(weight, row);
  for (int k = 0; k < weight.in(); ++k) {
    static_cast<T*>(packed)[place[k]] = from[k];
  }
}

std::shared_ptr<void> NewZeros(size_t num_bytes) {
  std::shared_ptr<void> zeros(
      ::operator new(num_bytes, kAlignment),
      [](void* data) { ::operator delete(data, kAlignment); });
  std::memset(zeros.get(), 0, num_bytes);
  return zeros;
}

}  // namespace

PackedWeight::PackedWeight(const std::vector<WeightRows>& parts, int in,
                           WeightMemory* memory)
    : in_(in) {
  OUTRIDER_CHECK(!parts.empty() && in > 0) << "an empty weight";
  type_ = parts.front().elements.type;
  for (const WeightRows& part : parts) {
    OUTRIDER_CHECK(part.elements.type == type_) << "parts of two types";
    out_ += part.num_rows;
  }
  num_bytes_ = NumSteps(type_, in) * cpu::PackedLayout::Of(out_).num_blocks *
               cpu::PackedLayout::kBlock * 4;
  data_ =
      memory != nullptr ? memory->Allocate(num_bytes_) : NewZeros(num_bytes_);

  int row = 0;
  for (const WeightRows& part : parts) {
    for (int i = 0; i < part.num_rows; ++i, ++row) {
      const size_t offset = static_cast<size_t>(i) * in;
      if (type_ == ElementType::kBFloat16) {
        PackRow(static_cast<const BFloat16*>(part.elements.data) + offset,
                *this, row, data_.get());
      } else {
        PackRow(static_cast<const float*>(part.elements.data) + offset, *this,
                row, data_.get());
      }
    }
  }
}

void PackedWeight::CopyRow(int row, float* to) const {
  OUTRIDER_CHECK(row >= 0 && row < out_) << "row " << row << " of " << out_;
  const PackedRow place(*this, row);
  for (int k = 0; k < in_; ++k) {
    to[k] = type_ == ElementType::kBFloat16
                ? ToFloat(static_cast<const BFloat16*>(data_.get())[place[k]])
                : static_cast<const float*>(data_.get())[place[k]];
  }
}

void Linear(const LinearArgs& args, const Execution& execution) {
  const PackedWeight& weight = *args.weight;
  const cpu::KernelTable& table = cpu::TableFor(execution.level());
  const cpu::LinearKernel& kernel = weight.type() == ElementType::kBFloat16
                                        ? table.linear_bfloat16
                                        : table.linear_float32;
  const int num_groups = cpu::PackedLayout::Of(weight.out()).num_groups;
  const int least_rows = kLeastPrepared / weight.in() + 1;
  const int least_groups =
      static_cast<int>(kLeastBytes / (weight.num_bytes() / num_groups) + 1);

  for (int row = 0; row < args.num_rows; row += kMaxRows) {
    const int num_rows = std::min(kMaxRows, args.num_rows - row);
    const cpu::LinearTask task = {
        .x = args.x + static_cast<size_t>(row) * weight.in(),
        .num_rows = num_rows,
        .in = weight.in(),
        .out = weight.out(),
        .weight = weight.data(),
        .bias = args.bias,
        .y = args.y + static_cast<size_t>(row) * weight.out(),
        .add = args.output == Output::kAdd,
        .scratch = Scratch(static_cast<size_t>(weight.in() + 31) * num_rows)};
    execution.ForRanges(num_rows, least_rows, [&](int begin, int end) {
      kernel.prepare(task, begin, end);
    });
    execution.ForRanges(num_groups, least_groups, [&](int begin, int end) {
      kernel.multiply(task, begin, end);
    });
  }
}

}  // namespace outrider::kernels
