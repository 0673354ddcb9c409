// SPDX-License-Identifier: Apache-2.0
#include "core/kernels/linear.h"

#include <algorithm>
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

// bfloat16 shares 32 bits between two neighbours along k.
int ValuesPerStep(ElementType type) {
  return type == ElementType::kBFloat16 ? 2 : 1;
}

size_t NumSteps(ElementType type, int in) {
  const int values = ValuesPerStep(type);
  return static_cast<size_t>((in + values - 1) / values);
}

// Where the elements of one row of a matrix stand in the packed order.
class PackedRow {
 public:
  PackedRow(const PackedWeight& weight, int row)
      : values_(ValuesPerStep(weight.type())) {
    constexpr int kBlock = cpu::PackedLayout::kBlock;
    const auto layout = cpu::PackedLayout::Of(weight.out());
    const int block = layout.GroupOf(row / kBlock);
    step_stride_ = layout.GroupSize(block) * kBlock * values_;
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

}  // namespace

void PackedWeight::Free::operator()(void* data) const {
  ::operator delete(data, kAlignment);
}

PackedWeight::PackedWeight(const std::vector<WeightRows>& parts, int in)
    : in_(in) {
  OUTRIDER_CHECK(!parts.empty() && in > 0) << "an empty weight";
  type_ = parts.front().elements.type;
  for (const WeightRows& part : parts) {
    OUTRIDER_CHECK(part.elements.type == type_) << "parts of two types";
    out_ += part.num_rows;
  }
  num_bytes_ = NumSteps(type_, in) * cpu::PackedLayout::Of(out_).num_blocks *
               cpu::PackedLayout::kBlock * 4;
  data_.reset(::operator new(num_bytes_, kAlignment));
  std::memset(data_.get(), 0, num_bytes_);

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

void Linear(const LinearArgs& args, Level level) {
  const PackedWeight& weight = *args.weight;
  const cpu::KernelTable& table = cpu::TableFor(level);
  const auto kernel = weight.type() == ElementType::kBFloat16
                          ? table.linear_bfloat16
                          : table.linear_float32;

  static thread_local std::vector<float> scratch;
  const size_t scratch_size =
      static_cast<size_t>(weight.in() + 1) * std::min(args.num_rows, kMaxRows);
  if (scratch.size() < scratch_size) scratch.resize(scratch_size);

  for (int row = 0; row < args.num_rows; row += kMaxRows) {
    kernel({.x = args.x + static_cast<size_t>(row) * weight.in(),
            .num_rows = std::min(kMaxRows, args.num_rows - row),
            .in = weight.in(),
            .out = weight.out(),
            .weight = weight.data(),
            .bias = args.bias,
            .y = args.y + static_cast<size_t>(row) * weight.out(),
            .add = args.output == Output::kAdd,
            .scratch = scratch.data()});
  }
}

}  // namespace outrider::kernels
