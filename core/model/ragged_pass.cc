// SPDX-License-Identifier: Apache-2.0
#include "core/model/ragged_pass.h"

#include <cstddef>
#include <utility>

namespace outrider {

int NumLogitRows(absl::Span<const Extension> pass) {
  int count = 0;
  for (const Extension& extension : pass) count += extension.num_rows;
  return count;
}

std::vector<absl::StatusOr<LogitRows>> ExtendAsOnePass(
    absl::Span<const Extension> batch,
    absl::FunctionRef<absl::Status(const Extension&)> check,
    absl::FunctionRef<
        absl::StatusOr<std::vector<LogitRows>>(absl::Span<const Extension>)>
        run) {
  std::vector<absl::StatusOr<LogitRows>> results;
  std::vector<Extension> pass;
  std::vector<size_t> members;  // of the batch, in the order of `pass`
  for (size_t i = 0; i < batch.size(); ++i) {
    absl::Status status = check(batch[i]);
    if (!status.ok()) {
      results.push_back(std::move(status));
      continue;
    }
    results.push_back(LogitRows());  // replaced below
    members.push_back(i);
    pass.push_back(batch[i]);
  }
  if (pass.empty()) return results;

  absl::StatusOr<std::vector<LogitRows>> rows = run(pass);
  for (size_t i = 0; i < members.size(); ++i) {
    if (!rows.ok()) {
      results[members[i]] = rows.status();
    } else {
      results[members[i]] = std::move((*rows)[i]);
    }
  }
  return results;
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
