// SPDX-License-Identifier: Apache-2.0
#include "core/model/ragged_pass.h"

#include <utility>

namespace outrider {

int NumLogitRows(absl::Span<const Extension> pass) {
  int count = 0;
  for (const Extension& extension : pass) count += extension.num_rows;
  return count;
}

CheckedPass::CheckedPass(
    absl::Span<const Extension> batch,
    absl::FunctionRef<absl::Status(const Extension&)> check) {
  for (size_t i = 0; i < batch.size(); ++i) {
    absl::Status status = check(batch[i]);
    if (!status.ok()) {
      results_.push_back(std::move(status));
      continue;
    }
    results_.push_back(LogitRows());  // replaced by Results
    members_.push_back(i);
    extensions_.push_back(batch[i]);
  }
}

PassResults CheckedPass::Results(absl::StatusOr<std::vector<LogitRows>> rows) {
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!rows.ok()) {
      results_[members_[i]] = rows.status();
    } else {
      results_[members_[i]] = std::move((*rows)[i]);
    }
  }
  return std::move(results_);
}

std::vector<LogitRows> RowsOfEach(absl::Span<const Extension> pass,
                                  int vocab_size,
                                  const std::shared_ptr<const float>& logits) {
  std::vector<LogitRows> rows;
  size_t first_row = 0;
  for (const Extension& extension : pass) {
    const int num_rows = extension.num_rows;
    if (num_rows == 0) {
      rows.emplace_back();
      continue;
    }
    const float* begin =
        logits.get() + first_row * static_cast<size_t>(vocab_size);
    rows.emplace_back(std::shared_ptr<const float>(logits, begin), num_rows,
                      vocab_size);
    first_row += static_cast<size_t>(num_rows);
  }
  return rows;
}

}  // namespace outrider
