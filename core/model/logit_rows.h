// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_LOGIT_ROWS_H_
#define OUTRIDER_CORE_MODEL_LOGIT_ROWS_H_

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/check.h"

namespace outrider {

// Raw logits in host memory: [num_rows, vocab_size] float32, row-major.
// Immutable; copies share the numbers.
class LogitRows {
 public:
  LogitRows() = default;
  // `data` keeps its owner alive, whatever that is (a tensor, a vector).
  LogitRows(std::shared_ptr<const float> data, int num_rows, int vocab_size)
      : data_(std::move(data)),
        num_rows_(num_rows),
        vocab_size_(vocab_size),
        row_stride_(vocab_size) {}

  static LogitRows FromVector(std::vector<float> values, int vocab_size) {
    OUTRIDER_CHECK(vocab_size > 0 && values.size() % vocab_size == 0);
    const int num_rows = static_cast<int>(values.size() / vocab_size);
    auto owner = std::make_shared<std::vector<float>>(std::move(values));
    return LogitRows({owner, owner->data()}, num_rows, vocab_size);
  }

  // The same rows without the padding that the head has beyond the tokenizer.
  LogitRows WithVocabSize(int vocab_size) const {
    OUTRIDER_CHECK(vocab_size <= row_stride_);
    LogitRows narrow = *this;
    narrow.vocab_size_ = vocab_size;
    return narrow;
  }

  int num_rows() const { return num_rows_; }
  int vocab_size() const { return vocab_size_; }
  // [vocab_size]; valid while any copy of this object lives.
  absl::Span<const float> Row(int i) const {
    OUTRIDER_CHECK(i >= 0 && i < num_rows_) << "row " << i;
    return {data_.get() + static_cast<size_t>(i) * row_stride_,
            static_cast<size_t>(vocab_size_)};
  }
  std::vector<absl::Span<const float>> Rows() const {
    std::vector<absl::Span<const float>> rows;
    for (int i = 0; i < num_rows_; ++i) rows.push_back(Row(i));
    return rows;
  }

 private:
  std::shared_ptr<const float> data_;
  int num_rows_ = 0;
  int vocab_size_ = 0;
  int row_stride_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_LOGIT_ROWS_H_
