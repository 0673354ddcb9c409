// SPDX-License-Identifier: Apache-2.0
#include "core/wire/generation_convert.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/wire/duration_convert.h"

namespace outrider {
namespace {

v1::TokenOrigin ToMessage(TokenOrigin origin) {
  switch (origin) {
    case TokenOrigin::kUnknown:
      break;
    case TokenOrigin::kDraft:
      return v1::TOKEN_ORIGIN_DRAFT;
    case TokenOrigin::kReplacement:
      return v1::TOKEN_ORIGIN_REPLACEMENT;
    case TokenOrigin::kBonus:
      return v1::TOKEN_ORIGIN_BONUS;
  }
  return v1::TOKEN_ORIGIN_UNSPECIFIED;
}

TokenOrigin FromMessage(v1::TokenOrigin proto) {
  switch (proto) {
    case v1::TOKEN_ORIGIN_DRAFT:
      return TokenOrigin::kDraft;
    case v1::TOKEN_ORIGIN_REPLACEMENT:
      return TokenOrigin::kReplacement;
    case v1::TOKEN_ORIGIN_BONUS:
      return TokenOrigin::kBonus;
    default:
      return TokenOrigin::kUnknown;
  }
}

v1::AheadOutcome ToMessage(AheadStats::Outcome outcome) {
  switch (outcome) {
    case AheadStats::Outcome::kNotAsked:
      break;
    case AheadStats::Outcome::kHit:
      return v1::AHEAD_OUTCOME_HIT;
    case AheadStats::Outcome::kMiss:
      return v1::AHEAD_OUTCOME_MISS;
  }
  return v1::AHEAD_OUTCOME_UNSPECIFIED;
}

AheadStats::Outcome FromMessage(v1::AheadOutcome proto) {
  switch (proto) {
    case v1::AHEAD_OUTCOME_HIT:
      return AheadStats::Outcome::kHit;
    case v1::AHEAD_OUTCOME_MISS:
      return AheadStats::Outcome::kMiss;
    default:
      return AheadStats::Outcome::kNotAsked;
  }
}

v1::FinishReason ToMessage(FinishReason reason) {
  switch (reason) {
    case FinishReason::kUnknown:
      break;
    case FinishReason::kEos:
      return v1::FINISH_REASON_EOS;
    case FinishReason::kStop:
      return v1::FINISH_REASON_STOP;
    case FinishReason::kLength:
      return v1::FINISH_REASON_LENGTH;
  }
  return v1::FINISH_REASON_UNSPECIFIED;
}

FinishReason FromMessage(v1::FinishReason proto) {
  switch (proto) {
    case v1::FINISH_REASON_EOS:
      return FinishReason::kEos;
    case v1::FINISH_REASON_STOP:
      return FinishReason::kStop;
    case v1::FINISH_REASON_LENGTH:
      return FinishReason::kLength;
    default:
      return FinishReason::kUnknown;
  }
}

void Set(const GenerationStart& start, v1::GenerationStart& proto) {
  proto.set_seed(start.seed);
  proto.set_prompt_length(start.prompt_length);
  proto.set_num_speculative_tokens(start.num_speculative_tokens);
  proto.set_auto_num_speculative_tokens(start.is_k_auto);
  proto.set_lossy(start.is_lossy);
  *proto.mutable_model() = outrider::ToProto(start.model);
  proto.set_cache_salt(start.cache_salt);
  if (const auto num_cached = start.num_cached_prompt_tokens) {
    proto.set_cached_prompt_tokens(*num_cached);
  }
}

GenerationStart FromMessage(const v1::GenerationStart& proto) {
  GenerationStart start = {
      .seed = proto.seed(),
      .prompt_length = static_cast<int>(proto.prompt_length()),
      .num_speculative_tokens =
          static_cast<int>(proto.num_speculative_tokens()),
      .is_k_auto = proto.auto_num_speculative_tokens(),
      .is_lossy = proto.lossy(),
      .model = outrider::FromProto(proto.model()),
      .cache_salt = proto.cache_salt()};
  if (proto.has_cached_prompt_tokens()) {
    start.num_cached_prompt_tokens =
        static_cast<int>(proto.cached_prompt_tokens());
  }
  return start;
}

void Set(const GeneratedToken& token, v1::GeneratedToken& proto) {
  proto.set_id(token.id);
  proto.set_text(token.text);
  proto.set_origin(ToMessage(token.origin));
  if (token.logprob.has_value()) proto.set_logprob(*token.logprob);
  for (const TokenLogprob& top : token.top_logprobs) {
    v1::TokenLogprob& added = *proto.add_top_logprobs();
    added.set_id(top.id);
    added.set_logprob(top.logprob);
  }
}

GeneratedToken FromMessage(const v1::GeneratedToken& proto) {
  GeneratedToken token = {.id = static_cast<TokenId>(proto.id()),
                          .text = proto.text(),
                          .origin = FromMessage(proto.origin())};
  if (proto.has_logprob()) token.logprob = proto.logprob();
  for (const v1::TokenLogprob& top : proto.top_logprobs()) {
    token.top_logprobs.push_back(
        {.id = static_cast<TokenId>(top.id()), .logprob = top.logprob()});
  }
  return token;
}

void Set(const RoundStats& round, v1::RoundStats& proto) {
  proto.set_num_drafted(round.num_drafted);
  proto.set_num_accepted(round.num_accepted);
  proto.set_num_looked_up(round.num_looked_up);
  SetDuration(round.round_seconds, proto.mutable_round_time());
  SetDuration(round.drafter.call_seconds, proto.mutable_draft_time());
  SetDuration(round.verifier.call_seconds, proto.mutable_verify_time());
  SetDuration(round.drafter.compute_seconds,
              proto.mutable_draft_compute_time());
  SetDuration(round.verifier.compute_seconds,
              proto.mutable_verify_compute_time());
  proto.set_drafter_bytes(round.drafter.wire_bytes);
  proto.set_verifier_bytes(round.verifier.wire_bytes);
  proto.set_drafter_messages(round.drafter.num_messages);
  proto.set_verifier_messages(round.verifier.num_messages);
  proto.set_ahead_outcome(ToMessage(round.ahead.outcome));
  proto.set_num_drafted_ahead(round.ahead.num_drafted);
  proto.set_num_more(round.num_more);
}

RoundStats FromMessage(const v1::RoundStats& proto) {
  return {
      .num_drafted = static_cast<int>(proto.num_drafted()),
      .num_accepted = static_cast<int>(proto.num_accepted()),
      .num_more = static_cast<int>(proto.num_more()),
      .num_looked_up = static_cast<int>(proto.num_looked_up()),
      .ahead = {.outcome = FromMessage(proto.ahead_outcome()),
                .num_drafted = static_cast<int>(proto.num_drafted_ahead())},
      .round_seconds = ToSeconds(proto.round_time()),
      .drafter = {.call_seconds = ToSeconds(proto.draft_time()),
                  .compute_seconds = ToSeconds(proto.draft_compute_time()),
                  .wire_bytes = static_cast<int64_t>(proto.drafter_bytes()),
                  .num_messages = static_cast<int>(proto.drafter_messages())},
      .verifier = {
          .call_seconds = ToSeconds(proto.verify_time()),
          .compute_seconds = ToSeconds(proto.verify_compute_time()),
          .wire_bytes = static_cast<int64_t>(proto.verifier_bytes()),
          .num_messages = static_cast<int>(proto.verifier_messages())}};
}

void Set(const GenerationFinish& finish, v1::GenerationFinish& proto) {
  proto.set_reason(ToMessage(finish.reason));
  proto.set_trailing_text(finish.trailing_text);
  proto.set_num_draft_failures(finish.num_draft_failures);
  proto.set_num_misses(finish.num_misses);
}

GenerationFinish FromMessage(const v1::GenerationFinish& proto) {
  return {.reason = FromMessage(proto.reason()),
          .trailing_text = proto.trailing_text(),
          .num_draft_failures = static_cast<int>(proto.num_draft_failures()),
          .num_misses = static_cast<int>(proto.num_misses())};
}

}  // namespace

v1::Schedule ToProto(Schedule schedule) {
  switch (schedule) {
    case Schedule::kSequential:
      return v1::SCHEDULE_SEQUENTIAL;
    case Schedule::kAhead:
      return v1::SCHEDULE_AHEAD;
    case Schedule::kPredraft:
      return v1::SCHEDULE_PREDRAFT;
    case Schedule::kAuto:
      return v1::SCHEDULE_AUTO;
  }
  return v1::SCHEDULE_UNSPECIFIED;
}

absl::StatusOr<std::optional<Schedule>> FromProto(v1::Schedule proto) {
  switch (proto) {
    case v1::SCHEDULE_UNSPECIFIED:
      return std::nullopt;
    case v1::SCHEDULE_SEQUENTIAL:
      return Schedule::kSequential;
    case v1::SCHEDULE_AHEAD:
      return Schedule::kAhead;
    case v1::SCHEDULE_PREDRAFT:
      return Schedule::kPredraft;
    case v1::SCHEDULE_AUTO:
      return Schedule::kAuto;
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("unknown schedule ", proto));
  }
}

v1::GenerateResponse ToProto(const GenerationUpdate& update) {
  v1::GenerateResponse proto;
  if (update.start.has_value()) Set(*update.start, *proto.mutable_start());
  proto.set_first_index(update.first_index);
  for (const GeneratedToken& token : update.tokens) {
    Set(token, *proto.add_tokens());
  }
  if (update.round.has_value()) Set(*update.round, *proto.mutable_round());
  if (update.finish.has_value()) Set(*update.finish, *proto.mutable_finish());
  return proto;
}

GenerationUpdate FromProto(const v1::GenerateResponse& proto) {
  GenerationUpdate update;
  if (proto.has_start()) update.start = FromMessage(proto.start());
  update.first_index = static_cast<int>(
      std::min<uint32_t>(proto.first_index(), std::numeric_limits<int>::max()));
  for (const v1::GeneratedToken& token : proto.tokens()) {
    update.tokens.push_back(FromMessage(token));
  }
  if (proto.has_round()) update.round = FromMessage(proto.round());
  if (proto.has_finish()) update.finish = FromMessage(proto.finish());
  return update;
}

}  // namespace outrider
