// SPDX-License-Identifier: Apache-2.0
#include "coordinator/round/session.h"

#include <algorithm>
#include <utility>

#include "core/sampling/coins.h"

namespace outrider {

Session::Session(Options options)
    : options_(std::move(options)),
      prompt_length_(static_cast<int>(options_.prompt.size())),
      committed_(options_.id),
      // A resume after m tokens begins far above any step that the broken
      // stream can have used, so that no DRAFT coin comes twice.
      next_step_((static_cast<uint64_t>(options_.delivered.size()) << 32) + 1) {
  if (options_.random == nullptr) {
    options_.random = std::make_unique<Coins>(options_.seed);
  }
  if (options_.cancellation == nullptr) {
    options_.cancellation = std::make_shared<Cancellation>();
  }
  committed_.Append(std::exchange(options_.prompt, {}));
  committed_.Append(std::exchange(options_.delivered, {}));
}

LogIds Session::log_ids() const {
  return {.request_id = options_.request_id,
          .traceparent = options_.traceparent};
}

int Session::MaxDraftLength() const {
  return std::max(0, options_.max_length - length() - 1);
}

RequestHeader Session::NextHeader(const CacheMirror& cache, int num_steps) {
  RequestHeader header = {.session = id(),
                          .incarnation = cache.incarnation(),
                          .step = next_step_,
                          .delta = cache.CatchUp(committed_)};
  next_step_ += num_steps;
  header.prefix_hash = committed_.PrefixHash(header.delta.keep_length);
  if (header.incarnation.is_none()) header.cache_salt = options_.cache_salt;
  return header;
}

RequestHeader Session::AdvisoryHeader(const CacheMirror& cache, bool is_over) {
  return {.session = id(),
          .incarnation = cache.incarnation(),
          .step = next_step_++,
          .is_over = is_over};
}

void Session::Commit(const Draft& draft, const Verdict& verdict,
                     absl::Span<const TokenId> more) {
  committed_.Append(
      absl::MakeConstSpan(draft.tokens).first(verdict.num_accepted));
  committed_.Append({verdict.next_token});
  committed_.Append(more);
  const int shared = length() - 1;  // no cache has the last token
  drafter_.SharesOnly(shared);
  verifier_.SharesOnly(shared);
}

}  // namespace outrider
