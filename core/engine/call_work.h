// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_ENGINE_CALL_WORK_H_
#define OUTRIDER_CORE_ENGINE_CALL_WORK_H_

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/engine/work.h"

namespace outrider {

// What is the same in every call that is work: it echoes its header, answers a
// miss, and gives its reply to whoever waits.
template <typename Call, typename Reply>
class CallWork : public Work {
 public:
  // Called once, on any thread.
  using Done = std::function<void(absl::StatusOr<Reply>)>;

  Want Begin(const NodeSession& session) final {
    session_ = &session;
    reply_.header.incarnation = session.incarnation;
    reply_.header.reused_length =
        log().length() - call_.header.delta.keep_length;
    return Start();
  }

  void Finish(const Ending& ending) final {
    if (!ending.status.ok()) {
      done_(ending.status);
      return;
    }
    if (ending.miss.has_value()) {
      reply_.header.cached_length = ending.miss->cached_length;
      reply_.outcome = *ending.miss;
    }
    reply_.header.compute_seconds = ending.compute_seconds;
    reply_.header.own_seconds = ending.own_seconds;
    reply_.header.queue_seconds = ending.queue_seconds;
    if (request().header.incarnation.is_none() && request().header.is_moved) {
      reply_.header.next_reprefill_in = ending.next_reprefill_in;
    }
    done_(std::move(reply_));
  }

 protected:
  CallWork(Call call, Request request, Done done)
      : Work(std::move(request)),
        call_(std::move(call)),
        done_(std::move(done)) {
    reply_.header = {.session = call_.header.session,
                     .incarnation = call_.header.incarnation,
                     .step = call_.header.step};
  }

  // What it wants first.
  virtual Want Start() = 0;
  // The end of the last Take: all but the header. So many of the session's
  // tokens, at most, are of the text that the reply speaks of.
  void SetReply(Reply&& reply,
                int most_cached = std::numeric_limits<int>::max()) {
    ReplyHeader header = reply_.header;
    header.cached_length = std::min(log().length(), most_cached);
    reply_ = std::move(reply);
    reply_.header = header;
  }

  const Call& call() const { return call_; }
  // The session's, from Start on.
  const TokenLog& log() const { return session_->log; }
  // Tokens that the call makes the session have.
  size_t num_committed() const { return call_.header.delta.length(); }
  absl::Span<const TokenId> committed() const {
    return log().tokens().first(num_committed());
  }
  // The same from Start on, where the log has them from the first Take on.
  std::vector<TokenId> TextOfDelta() const {
    const CacheDelta& delta = call_.header.delta;
    const auto kept = log().tokens().first(delta.keep_length);
    std::vector<TokenId> text(kept.begin(), kept.end());
    text.insert(text.end(), delta.append_tokens.begin(),
                delta.append_tokens.end());
    return text;
  }

 private:
  const Call call_;
  const Done done_;
  const NodeSession* session_ = nullptr;
  Reply reply_ = {};
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_ENGINE_CALL_WORK_H_
