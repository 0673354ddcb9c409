// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GENERATION_H_
#define OUTRIDER_COORDINATOR_SERVICE_GENERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "coordinator/round/round_stats.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "coordinator/round/stop_condition.h"
#include "coordinator/service/text_stream.h"
#include "core/base/task.h"
#include "core/base/token.h"

namespace outrider {

// Where a committed token comes from.
enum class TokenOrigin { kDraft, kReplacement, kBonus };

struct CommittedLogprobs {
  double logprob = 0;
  std::vector<TokenLogprob> top = {};
};

struct CommittedToken {
  TokenId id = 0;
  std::string text = {};
  TokenOrigin origin = TokenOrigin::kBonus;
  std::optional<CommittedLogprobs> logprobs = {};  // where asked for
};

// What one round adds to the stream.
struct GenerationEvent {
  int first_index = 0;  // in the continuation, counted from 0
  std::vector<CommittedToken> tokens = {};
  RoundStats round = {};
};

struct GenerationEnd {
  FinishReason reason = FinishReason::kLength;
  std::string trailing_text = {};
  int num_tokens = 0;  // of the continuation, those delivered before included
  int num_draft_failures = 0;
  int num_misses = 0;
  int num_cached_prompt_tokens = 0;  // that the verifier had from others
};

// Takes the events of one generation, in order.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // Waits while the client is slow; CANCELLED when it is gone.
  virtual Task<absl::Status> Write(GenerationEvent event) = 0;
};

// One generation from its first round to its end.
class Generation {
 public:
  struct Parts {
    Session& session;
    SpeculativeDecoder& decoder;
    const StopCondition& stop;
    TextStream& text;
    GenerationSink& sink;
  };

  explicit Generation(Parts parts) : parts_(parts) {}

  // CANCELLED where the client is gone; otherwise the first failure of a round.
  Task<absl::StatusOr<GenerationEnd>> Run();

 private:
  // The tokens delivered before a resume pass through text and stop condition
  // again, silently: the reason, where they end the generation already.
  std::optional<FinishReason> ReplayDelivered();
  // The block's tokens up to the first stop, as an event.
  GenerationEvent TakeBlock(int length_before, RoundResult& round,
                            std::optional<FinishReason>& reason);

  Parts parts_;
  GenerationEnd end_;
  bool has_begun_ = false;  // a round has ended
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GENERATION_H_
