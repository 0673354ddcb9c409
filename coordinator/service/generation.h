// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GENERATION_H_
#define OUTRIDER_COORDINATOR_SERVICE_GENERATION_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "coordinator/round/session.h"
#include "coordinator/round/speculative_decoder.h"
#include "coordinator/round/stop_condition.h"
#include "coordinator/service/text_stream.h"
#include "core/base/task.h"
#include "core/base/token.h"
#include "core/wire/generation_update.h"

namespace outrider {

// Takes the updates of one generation, in order.
class GenerationSink {
 public:
  virtual ~GenerationSink() = default;
  // Waits while the client is slow; CANCELLED when it is gone.
  virtual Task<absl::Status> Write(GenerationUpdate update) = 0;
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

  // The stream's last update, which the sink does not get. CANCELLED where the
  // client is gone; otherwise the first failure of a round.
  Task<absl::StatusOr<GenerationUpdate>> Run();

 private:
  // The tokens delivered before a resume pass through text and stop condition
  // again, silently: the reason, where they end the generation already.
  std::optional<FinishReason> ReplayDelivered();
  // The text that becomes certain with token `i` of a block; one that ends the
  // generation has none.
  std::string TakeText(absl::Span<const TokenId> block, int i,
                       const StopCondition::BlockEnd& end);
  // The block's tokens up to the first stop, as an update.
  GenerationUpdate TakeBlock(int length_before, RoundResult& round,
                             std::optional<FinishReason>& reason);

  Parts parts_;
  int num_tokens_ = 0;  // of the continuation, delivered ones included
  GenerationFinish finish_;
  bool has_begun_ = false;     // a round has ended
  bool is_text_over_ = false;  // a stop string is complete
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GENERATION_H_
