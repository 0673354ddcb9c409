// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_COORDINATOR_SERVICE_GENERATION_TALLY_H_
#define OUTRIDER_COORDINATOR_SERVICE_GENERATION_TALLY_H_

#include <chrono>
#include <optional>

#include "absl/status/status.h"
#include "coordinator/service/coordinator_metrics.h"
#include "core/wire/generation_update.h"

namespace outrider {

// One generation, from its arrival to End, which is called once and is the
// last to touch the metrics. Confined to the generation's coroutine.
class CoordinatorMetrics::Tally {
 public:
  struct Request {
    Clock::time_point arrival = Clock::now();
    bool is_resumed = false;  // its first tokens were streamed elsewhere
  };
  Tally(CoordinatorMetrics& metrics, const Request& request)
      : metrics_(metrics), request_(request) {
    metrics_.running_.Increment();
  }
  Tally(const Tally&) = delete;

  void Round(const GenerationUpdate& update);
  // So long the stream waited for its client to read.
  void Waited(Clock::duration time) { waited_ += time; }
  void CountLossy() { metrics_.lossy_.Increment(); }  // once
  void CountQuarantined() { metrics_.quarantined_.Increment(); }
  // No reason where it ended otherwise than well.
  void End(std::optional<FinishReason> reason, absl::StatusCode code);

  int num_rounds() const { return num_rounds_; }
  int num_tokens() const { return num_tokens_; }
  double seconds() const { return Since(request_.arrival); }

 private:
  static double Since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  CoordinatorMetrics& metrics_;
  const Request request_;
  Clock::duration waited_ = {};
  // Less what it had waited by then.
  Clock::time_point first_token_ = {}, last_token_ = {};
  int first_block_ = 0;  // tokens that came with the first
  int num_rounds_ = 0, num_tokens_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_COORDINATOR_SERVICE_GENERATION_TALLY_H_
