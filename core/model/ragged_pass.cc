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
    absl::Span<const Extension> batch, int vocab_size,
    absl::FunctionRef<absl::Status(const Extension&)> check,
    absl::FunctionRef<absl::StatusOr<std::shared_ptr<const float>>(
        absl::Span<const Extension>)>
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

  const absl::StatusOr<std::shared_ptr<const float>> logits = run(pass);
  size_t first_row = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const int num_rows = pass[i].num_rows;
    if (!logits.ok()) {
      results[members[i]] = logits.status();
    } else if (num_rows > 0) {
      const float* begin =
          logits->get() + first_row * static_cast<size_t>(vocab_size);
      results[members[i]] = LogitRows(
          std::shared_ptr<const float>(*logits, begin), num_rows, vocab_size);
    }
    first_row += static_cast<size_t>(num_rows);
  }
  return results;
}

}  // namespace outrider
