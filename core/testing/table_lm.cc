// SPDX-License-Identifier: Apache-2.0
#include "core/testing/table_lm.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/check.h"

namespace outrider::testing {

TableLm::TableLm(Options options) : options_(std::move(options)) {
  info_ = {.name = "table",
           .weights_hash = "0",
           .dtype = "float32",
           .device = "cpu",
           .numerics = "table",
           .vocab_size = options_.vocab_size,
           .context_length = options_.context_length,
           .eos_ids = options_.eos_ids};
}

std::vector<absl::StatusOr<LogitRows>> TableLm::Extend(
    absl::Span<const Extension> batch) {
  std::vector<absl::StatusOr<LogitRows>> results;
  results.reserve(batch.size());
  for (const Extension& extension : batch) {
    results.push_back(ExtendOne(extension));
  }
  return results;
}

absl::StatusOr<LogitRows> TableLm::ExtendOne(const Extension& extension) {
  const int num_tokens = static_cast<int>(extension.tokens.size());
  const auto it = caches_.find(extension.session);
  const int cached = it == caches_.end() ? 0 : it->second.cached_length;
  if (num_tokens < 1 || extension.num_rows > num_tokens ||
      extension.keep_length < 0 || extension.keep_length > cached) {
    return absl::InvalidArgumentError(absl::StrCat(
        "keep ", extension.keep_length, " of ", cached, ", append ", num_tokens,
        ", return ", extension.num_rows, " rows"));
  }
  if (extension.keep_length + num_tokens > options_.context_length) {
    return absl::InvalidArgumentError("beyond the context");
  }
  for (const TokenId token : extension.tokens) {
    if (token < 0 || token >= options_.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("token ", token));
    }
  }

  Entries& entries = caches_[extension.session];
  TokenSeq& cache = entries.tokens;
  cache.resize(
      options_.cut
          ? options_.cut({.num_entries = static_cast<int>(cache.size()),
                          .cached_length = cached,
                          .num_appended = entries.num_appended,
                          .keep_length = extension.keep_length})
          : extension.keep_length);
  cache.insert(cache.end(), extension.tokens.begin(), extension.tokens.end());
  entries.cached_length = extension.keep_length + num_tokens;
  entries.num_appended = num_tokens;
  num_tokens_run_ += num_tokens;
  std::vector<float> values;
  for (int i = extension.num_rows; i > 0; --i) {
    const std::vector<float> row = options_.table(
        absl::MakeConstSpan(cache).first(cache.size() - (i - 1)));
    OUTRIDER_CHECK(static_cast<int>(row.size()) == options_.vocab_size);
    values.insert(values.end(), row.begin(), row.end());
  }
  return LogitRows::FromVector(std::move(values), options_.vocab_size);
}

TokenSeq TableLm::Cache(const SessionId& session) const {
  const auto it = caches_.find(session);
  return it == caches_.end() ? TokenSeq() : it->second.tokens;
}

}  // namespace outrider::testing
