// SPDX-License-Identifier: Apache-2.0
#include "client/generation_report.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/base/error_reason.h"
#include "core/base/retry_delay.h"
#include "core/wire/finish_reason_name.h"

namespace outrider::client {
namespace {

using Json = nlohmann::ordered_json;

double Ms(double seconds) { return seconds * 1e3; }

double Ms(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

double Ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

const char* FinishName(const GenerationReport& report,
                       const absl::Status& failure) {
  if (report.finish) return NameOf(report.finish->reason);
  return failure.ok() ? "cancelled" : "failed";
}

// What people read of its end.
const char* Describe(const GenerationReport& report) {
  if (!report.finish) return "cut short";
  switch (report.finish->reason) {
    case FinishReason::kEos:
      return "up to the end of the text";
    case FinishReason::kStop:
      return "up to a stop string or token";
    case FinishReason::kLength:
      return "up to the length limit";
    case FinishReason::kUnknown:
      break;
  }
  return "finished";
}

// The first round fills the caches with the prompt: where there are others,
// they say how long a round takes.
RoundTotals SumDecodeRounds(const GenerationReport& report) {
  std::vector<RoundStats> rounds = report.rounds;
  if (rounds.size() > 1) rounds.erase(rounds.begin());
  return SumRounds(rounds);
}

std::string Share(const char* name, double ms, const RoundTotals& totals) {
  return absl::StrFormat("%s %.1f ms (%.0f %%)", name, ms / totals.num_rounds,
                         100 * Ratio(ms, totals.round_ms));
}

double PerToken(const GenerationReport& report, double count) {
  return Ratio(count, static_cast<double>(report.tokens.size()));
}

double BytesPerToken(const GenerationReport& report,
                     const RoundTotals& totals) {
  return PerToken(report, static_cast<double>(totals.drafter_bytes +
                                              totals.verifier_bytes));
}

// "drafter 0.02 kB, 0.54 messages".
std::string Traffic(const GenerationReport& report, const char* node,
                    int64_t bytes, int messages) {
  return absl::StrFormat("%s %.2f kB, %.2f messages", node,
                         PerToken(report, static_cast<double>(bytes)) / 1e3,
                         PerToken(report, messages));
}

std::string NameOf(AheadStats::Outcome outcome) {
  switch (outcome) {
    case AheadStats::Outcome::kNotAsked:
      break;
    case AheadStats::Outcome::kHit:
      return "hit";
    case AheadStats::Outcome::kMiss:
      return "miss";
  }
  return "none";
}

Json RoundToJson(const RoundStats& round) {
  return {{"drafted", round.num_drafted},
          {"accepted", round.num_accepted},
          {"more", round.num_more},
          {"looked_up", round.num_looked_up},
          {"ahead", NameOf(round.ahead.outcome)},
          {"drafted_ahead", round.ahead.num_drafted},
          {"draft_ms", Ms(round.drafter.call_seconds)},
          {"verify_ms", Ms(round.verifier.call_seconds)},
          {"draft_compute_ms", Ms(round.drafter.compute_seconds)},
          {"verify_compute_ms", Ms(round.verifier.compute_seconds)},
          {"round_ms", Ms(round.round_seconds)},
          {"drafter_bytes", round.drafter.wire_bytes},
          {"verifier_bytes", round.verifier.wire_bytes},
          {"drafter_messages", round.drafter.num_messages},
          {"verifier_messages", round.verifier.num_messages}};
}

Json RoundsToJson(const GenerationReport& report) {
  Json rounds = Json::array();
  for (const RoundStats& round : report.rounds) {
    rounds.push_back(RoundToJson(round));
  }
  return rounds;
}

Json LogprobToJson(TokenId id, double logprob) {
  return {{"id", id}, {"logprob", logprob}};
}

Json LogprobsToJson(const GenerationReport& report) {
  Json all = Json::array();
  for (const GeneratedToken& token : report.scored) {
    Json json = LogprobToJson(token.id, *token.logprob);
    json["top"] = Json::array();
    for (const TokenLogprob& top : token.top_logprobs) {
      json["top"].push_back(LogprobToJson(top.id, top.logprob));
    }
    all.push_back(std::move(json));
  }
  return all;
}

Json TotalsToJson(const GenerationReport& report) {
  const RoundTotals totals = SumRounds(report.rounds);
  return {{"tokens", report.tokens.size()},
          {"rounds", totals.num_rounds},
          {"drafted", totals.num_drafted},
          {"accepted", totals.num_accepted},
          {"looked_up", totals.num_looked_up},
          {"ahead_hits", totals.num_ahead_hits},
          {"ahead_misses", totals.num_ahead_misses},
          {"drafted_ahead", totals.num_drafted_ahead},
          {"acceptance", totals.acceptance()},
          {"tokens_per_round", Ratio(report.tokens.size(), totals.num_rounds)},
          {"draft_ms", totals.draft_ms},
          {"verify_ms", totals.verify_ms},
          {"draft_compute_ms", totals.draft_compute_ms},
          {"verify_compute_ms", totals.verify_compute_ms},
          {"round_ms", totals.round_ms},
          {"drafter_bytes", totals.drafter_bytes},
          {"verifier_bytes", totals.verifier_bytes},
          {"drafter_messages", totals.drafter_messages},
          {"verifier_messages", totals.verifier_messages},
          {"bytes_per_token", BytesPerToken(report, totals)}};
}

// What the status says besides is there only where it does.
Json ErrorToJson(const absl::Status& failure) {
  Json error = {{"code", absl::StatusCodeToString(failure.code())},
                {"message", std::string(failure.message())}};
  if (const auto reason = ErrorReasonOf(failure)) error["reason"] = *reason;
  if (const auto metadata = ErrorMetadataOf(failure); !metadata.empty()) {
    error["metadata"] = metadata;
  }
  if (const auto delay = RetryDelayOf(failure)) {
    error["retry_after_ms"] = delay->count();
  }
  return error;
}

// A value of the start, where there was one.
template <typename Value>
Json OfStart(const GenerationReport& report, const Value& value) {
  return report.start.has_value() ? Json(value) : Json();
}

}  // namespace

void GenerationReport::Add(const GenerationUpdate& update,
                           std::chrono::nanoseconds elapsed) {
  if (update.start) start = update.start;
  if (!update.tokens.empty()) {
    if (tokens.empty()) {
      first_token_time = elapsed;
      num_first_tokens = static_cast<int>(update.tokens.size());
    }
    last_token_time = elapsed;
  }
  for (const GeneratedToken& token : update.tokens) {
    tokens.push_back(token.id);
    text += token.text;
    if (token.logprob.has_value()) scored.push_back(token);
  }
  if (update.round) rounds.push_back(*update.round);
  if (update.finish) {
    finish = update.finish;
    text += update.finish->trailing_text;
  }
}

double RoundTotals::acceptance() const {
  return Ratio(num_accepted, num_drafted);
}

double RoundTotals::rest_ms() const { return round_ms - draft_ms - verify_ms; }

RoundTotals SumRounds(const std::vector<RoundStats>& rounds) {
  RoundTotals totals;
  for (const RoundStats& round : rounds) {
    ++totals.num_rounds;
    totals.num_drafted += round.num_drafted;
    totals.num_accepted += round.num_accepted;
    totals.draft_ms += Ms(round.drafter.call_seconds);
    totals.verify_ms += Ms(round.verifier.call_seconds);
    totals.draft_compute_ms += Ms(round.drafter.compute_seconds);
    totals.verify_compute_ms += Ms(round.verifier.compute_seconds);
    totals.round_ms += Ms(round.round_seconds);
    totals.drafter_bytes += round.drafter.wire_bytes;
    totals.verifier_bytes += round.verifier.wire_bytes;
    totals.drafter_messages += round.drafter.num_messages;
    totals.verifier_messages += round.verifier.num_messages;
    totals.num_looked_up += round.num_looked_up;
    totals.num_drafted_ahead += round.ahead.num_drafted;
    if (round.ahead.outcome == AheadStats::Outcome::kHit) {
      ++totals.num_ahead_hits;
    } else if (round.ahead.outcome == AheadStats::Outcome::kMiss) {
      ++totals.num_ahead_misses;
    }
  }
  return totals;
}

double DecodeTokensPerSecond(const GenerationReport& report) {
  const auto num_tokens =
      static_cast<double>(report.tokens.size()) - report.num_first_tokens;
  return 1e3 * Ratio(num_tokens,
                     Ms(report.last_token_time - report.first_token_time));
}

std::string ToSummary(const GenerationReport& report) {
  std::string summary = absl::StrFormat(
      "%d tokens in %.2f s, %s; the first after %.0f ms, then %.1f tokens/s\n",
      report.tokens.size(), Ms(report.last_token_time) / 1e3, Describe(report),
      Ms(report.first_token_time), DecodeTokensPerSecond(report));
  if (report.start && report.start->is_lossy) {
    absl::StrAppend(&summary,
                    "lossy (--lossy-lenience): the text does not have the "
                    "target's law\n");
  }
  const RoundTotals all = SumRounds(report.rounds);
  if (all.num_rounds == 0) return summary;
  const GenerationStart start = report.start.value_or(GenerationStart{});
  const std::string k =
      start.is_k_auto ? "auto" : absl::StrCat(start.num_speculative_tokens);
  if (all.num_drafted > 0) {
    absl::StrAppendFormat(
        &summary, "K = %s: %d of %d drafts accepted (%.0f %%), ", k,
        all.num_accepted, all.num_drafted, 100 * all.acceptance());
    if (all.num_looked_up > 0) {
      absl::StrAppendFormat(&summary, "%d of them looked up in the text, ",
                            all.num_looked_up);
    }
    if (const int num_asked = all.num_ahead_hits + all.num_ahead_misses;
        num_asked > 0) {
      absl::StrAppendFormat(
          &summary, "%d drafted ahead for the verdict of %d of %d rounds, ",
          all.num_drafted_ahead, all.num_ahead_hits, num_asked);
    }
  } else {
    absl::StrAppendFormat(&summary, "K = %s: nothing drafted, ", k);
  }
  absl::StrAppendFormat(
      &summary, "%.2f tokens a round\nper token: %s; %s\n",
      Ratio(report.tokens.size(), all.num_rounds),
      Traffic(report, "drafter", all.drafter_bytes, all.drafter_messages),
      Traffic(report, "verifier", all.verifier_bytes, all.verifier_messages));
  const RoundTotals decode = SumDecodeRounds(report);
  absl::StrAppendFormat(&summary, "a round takes %.1f ms: %s, %s, %s\n",
                        decode.round_ms / decode.num_rounds,
                        Share("draft", decode.draft_ms, decode),
                        Share("verify", decode.verify_ms, decode),
                        Share("rest", decode.rest_ms(), decode));
  if (start.num_cached_prompt_tokens.value_or(0) > 0) {
    absl::StrAppend(&summary, *start.num_cached_prompt_tokens,
                    " tokens of the prompt were cached from before\n");
  }
  if (report.finish && report.finish->num_draft_failures > 0) {
    absl::StrAppend(&summary, "drafts that failed and became plain decoding: ",
                    report.finish->num_draft_failures, "\n");
  }
  if (report.finish && report.finish->num_misses > 0) {
    absl::StrAppend(&summary,
                    "caches that a node had lost and was sent again: ",
                    report.finish->num_misses, "\n");
  }
  return summary;
}

std::string ToJson(const GenerationReport& report, const JsonOptions& options) {
  const GenerationStart start = report.start.value_or(GenerationStart{});
  const GenerationFinish finish = report.finish.value_or(GenerationFinish{});
  Json json = {
      {"token_ids", report.tokens},
      {"text", report.text},
      {"finish_reason", FinishName(report, options.failure)},
      // It is in quotes, as in Protobuf's JSON: readers that keep
      // numbers as doubles would change its last digits.
      {"seed", OfStart(report, absl::StrCat(start.seed))},
      {"model", OfStart(report, ToText(start.model))},
      {"prompt_length", OfStart(report, start.prompt_length)},
      {"cached_prompt_tokens", start.num_cached_prompt_tokens.has_value()
                                   ? Json(*start.num_cached_prompt_tokens)
                                   : Json()},
      {"num_speculative_tokens", OfStart(report, start.num_speculative_tokens)},
      {"auto_num_speculative_tokens", OfStart(report, start.is_k_auto)},
      {"lossy", OfStart(report, start.is_lossy)},
      {"totals", TotalsToJson(report)},
      {"timings",
       {{"time_to_first_token_ms", Ms(report.first_token_time)},
        {"total_ms", Ms(report.last_token_time)},
        {"decode_tokens_per_second", DecodeTokensPerSecond(report)}}},
      {"num_draft_failures", finish.num_draft_failures},
      {"num_misses", finish.num_misses}};
  if (options.with_rounds) json["rounds"] = RoundsToJson(report);
  if (!report.scored.empty()) json["logprobs"] = LogprobsToJson(report);
  if (!options.failure.ok()) json["error"] = ErrorToJson(options.failure);
  if (options.resume) {
    json["resume"] = {{"seed", options.resume->seed},
                      {"model", options.resume->model},
                      {"tokens", options.resume->tokens},
                      {"cache_salt", options.resume->salt}};
  }
  // The text is a peer's: what is not UTF-8 must not end the program.
  const std::string text = json.dump(-1, ' ', options.is_for_terminal,
                                     Json::error_handler_t::replace);
  if (!options.is_for_terminal) return text;
  // DEL, the one control character that JSON has as it is, is in texts alone.
  return absl::StrReplaceAll(text, {{"\x7f", "\\u007f"}});
}

}  // namespace outrider::client
