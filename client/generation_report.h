// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CLIENT_GENERATION_REPORT_H_
#define OUTRIDER_CLIENT_GENERATION_REPORT_H_

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/resume_command.h"
#include "core/wire/generation_update.h"

namespace outrider::client {

// All that one generation has brought so far, and when. Thread-compatible.
struct GenerationReport {
  // `elapsed` since the call began.
  void Add(const GenerationUpdate& update, std::chrono::nanoseconds elapsed);

  std::optional<GenerationStart> start = {};
  TokenSeq tokens = {};
  std::vector<GeneratedToken> scored = {};  // those that had log-probabilities
  std::string text = {};
  std::vector<RoundStats> rounds = {};
  std::optional<GenerationFinish> finish = {};
  std::chrono::nanoseconds first_token_time = {};
  std::chrono::nanoseconds last_token_time = {};
  int num_first_tokens = 0;  // that came with the first one
};

// Sums over rounds, and what follows from them.
struct RoundTotals {
  int num_rounds = 0;
  int num_drafted = 0;
  int num_accepted = 0;
  double draft_ms = 0;
  double verify_ms = 0;
  double draft_compute_ms = 0;
  double verify_compute_ms = 0;
  double round_ms = 0;
  int64_t drafter_bytes = 0;
  int64_t verifier_bytes = 0;
  int drafter_messages = 0;
  int verifier_messages = 0;
  int num_looked_up = 0;
  int num_ahead_hits = 0;
  int num_ahead_misses = 0;
  int num_drafted_ahead = 0;

  // Accepted / offered; 0 where none was offered.
  double acceptance() const;
  // What is neither drafting nor verifying.
  double rest_ms() const;
};
RoundTotals SumRounds(const std::vector<RoundStats>& rounds);

// Tokens after the first message over the time they took: without the prompt,
// and without the head start of a first message of several tokens. 0 where
// there is no second message.
double DecodeTokensPerSecond(const GenerationReport& report);

// A few lines for people, each ended by a newline.
std::string ToSummary(const GenerationReport& report);

struct JsonOptions {
  bool with_rounds = false;  // each of them, hundreds of bytes
  // It is of printable ASCII alone, as a text may have control characters.
  bool is_for_terminal = false;
  absl::Status failure = absl::OkStatus();
  std::optional<ResumeFlags> resume = {};  // where the stream can be resumed
};

// One JSON object, on one line: ids and text, seed, model, totals, timings, and
// log-probabilities where the tokens have them. What the start says is null
// where there was none. `finish_reason` is "cancelled" where the generation has
// no finish, and "failed" where it has a failure: `error` says which, and
// `resume` what the flags of a resume are.
std::string ToJson(const GenerationReport& report,
                   const JsonOptions& options = {});

}  // namespace outrider::client

#endif  // OUTRIDER_CLIENT_GENERATION_REPORT_H_
