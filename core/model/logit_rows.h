// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_LOGIT_ROWS_H_
#define OUTRIDER_CORE_MODEL_LOGIT_ROWS_H_

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/check.h"
#include "core/base/row_question.h"
#include "core/base/token.h"

namespace outrider {

// Raw logits in host memory: [num_rows, vocab_size] float32, row-major; or of
// each row what was asked of it (row_question.h), or that row by itself. The
// last of them may be of tokens that the model drew. Immutable; copies share
// the numbers.
class LogitRows {
 public:
  struct AskedRow {
    std::optional<RowAnswer> answer = {};
    std::shared_ptr<const float> logits = {};  // where there is no answer
  };

  LogitRows() = default;
  // `data` keeps its owner alive, whatever that is (a tensor, a vector).
  LogitRows(std::shared_ptr<const float> data, int num_rows, int vocab_size)
      : data_(std::move(data)),
        num_rows_(num_rows),
        vocab_size_(vocab_size),
        row_stride_(vocab_size) {}
  LogitRows(std::vector<AskedRow> rows, int vocab_size,
            std::vector<TokenId> drawn = {})
      : asked_(std::make_shared<const std::vector<AskedRow>>(std::move(rows))),
        drawn_(std::move(drawn)),
        num_rows_(static_cast<int>(asked_->size())),
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

  // Row i alone.
  LogitRows Only(int i) const {
    OUTRIDER_CHECK(i >= 0 && i < num_rows_) << "row " << i;
    LogitRows row = *this;
    row.first_ += i;
    row.num_rows_ = 1;
    row.drawn_.clear();
    return row;
  }

  int num_rows() const { return num_rows_; }
  int vocab_size() const { return vocab_size_; }
  // What the model went on with (Extension::max_drawn): the last rows are those
  // after these, one each.
  absl::Span<const TokenId> drawn() const { return drawn_; }
  // [vocab_size], of a row that came as such; valid while any copy of this
  // object lives.
  absl::Span<const float> Row(int i) const {
    const RowView row = View(i);
    OUTRIDER_CHECK(row.answer == nullptr) << "row " << i << " was answered";
    return row.logits;
  }
  // The same of any row.
  RowView View(int i) const {
    OUTRIDER_CHECK(i >= 0 && i < num_rows_) << "row " << i;
    const auto size = static_cast<size_t>(vocab_size_);
    const auto place = static_cast<size_t>(first_ + i);
    if (asked_ == nullptr) {
      return {{data_.get() + place * row_stride_, size}};
    }
    const AskedRow& row = (*asked_)[place];
    if (row.answer.has_value()) return {{}, &*row.answer};
    return {{row.logits.get(), size}};
  }
  std::vector<absl::Span<const float>> Rows() const {
    std::vector<absl::Span<const float>> rows;
    for (int i = 0; i < num_rows_; ++i) rows.push_back(Row(i));
    return rows;
  }
  std::vector<RowView> Views() const {
    std::vector<RowView> views;
    views.reserve(static_cast<size_t>(num_rows_));
    for (int i = 0; i < num_rows_; ++i) views.push_back(View(i));
    return views;
  }

 private:
  std::shared_ptr<const float> data_;
  std::shared_ptr<const std::vector<AskedRow>> asked_;  // in place of data_
  std::vector<TokenId> drawn_;
  int first_ = 0;
  int num_rows_ = 0;
  int vocab_size_ = 0;
  int row_stride_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_LOGIT_ROWS_H_
