// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/verifier_seat.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "coordinator/nodes/text_promise.h"
#include "coordinator/nodes/text_room.h"

namespace outrider {
namespace {

// A node that says more is mistaken.
constexpr double kMostSeconds = 600;

// What taking in the session's text has cost the node's other sessions. An
// older node tells only how long the passes took that it was in.
MoveGate::Outcome OutcomeOf(const ReplyHeader& header) {
  const auto time = [](double seconds) {
    return std::chrono::duration_cast<MoveGate::Clock::duration>(
        std::chrono::duration<double>(seconds));
  };
  const double taken =
      header.own_seconds > 0 ? header.own_seconds : header.compute_seconds;
  MoveGate::Outcome outcome = {.taken = time(std::min(taken, kMostSeconds))};
  if (header.next_reprefill_in.has_value()) {
    outcome.next_at = MoveGate::Clock::now() +
                      time(std::min(*header.next_reprefill_in, kMostSeconds));
  }
  return outcome;
}

// What a node that the session leaves knows it as.
RequestHeader OwnNameOf(const VerifyCall& call) {
  return {.session = call.header.session,
          .incarnation = call.header.incarnation,
          .step = call.header.step};
}

// One of the nodes that fit, and rather one that `is_better`, unless all of
// those are doubtful.
NodeGroup<VerifierNode>::Choice ChooseRather(
    SessionPool& pool, const SessionId& session,
    const NodeGroup<VerifierNode>::Fits& is_better,
    const NodeGroup<VerifierNode>::Fits& fits) {
  auto choice = pool.ChooseVerifier(
      session, [&](const VerifierNode& node, const NodeDescription& answer) {
        return is_better(node, answer) && fits(node, answer);
      });
  const bool is_good = choice.seat != nullptr && !choice.is_doubtful;
  return is_good ? std::move(choice) : pool.ChooseVerifier(session, fits);
}

// The same, and rather one that takes the drafts that the call has.
NodeGroup<VerifierNode>::Choice ChooseRoom(
    SessionPool& pool, const SessionId& session, const VerifyCall& call,
    const NodeGroup<VerifierNode>::Fits& fits) {
  return ChooseRather(
      pool, session,
      [&](const VerifierNode&, const NodeDescription& answer) {
        return TakesDrafts(answer, call);
      },
      fits);
}

}  // namespace

VerifierSeat::VerifierSeat(SessionPool& pool, const SessionId& session,
                           Seat<VerifierNode> seat,
                           const NodeDescription& description)
    : pool_(pool),
      session_(session),
      seat_(std::move(seat)),
      first_(description),
      description_(description),
      suspicion_(pool, session) {}

Seat<VerifierNode> VerifierSeat::TakeOther(const VerifyCall& call,
                                           const Nodes& avoided,
                                           bool even_doubtful) {
  const Sameness promise = PromiseOf(call);
  auto choice =
      ChooseRoom(pool_, session_, call,
                 [&](const VerifierNode& node, const NodeDescription& answer) {
                   return !absl::c_linear_search(avoided, &node) &&
                          Fits(answer, call, promise);
                 });
  if (choice.seat == nullptr || (choice.is_doubtful && !even_doubtful)) {
    return nullptr;
  }
  turn_ = {};
  return Take(std::move(choice));
}

Seat<VerifierNode> VerifierSeat::Take(NodeGroup<VerifierNode>::Choice choice) {
  description_ = std::move(choice.description);
  suspicion_.NodeIsAnother();
  return std::exchange(seat_, std::move(choice.seat));
}

bool VerifierSeat::Move(const VerifyCall& call, MoveReason reason,
                        const absl::Status& why) {
  const Clock::time_point now = Clock::now();
  if (reason == MoveReason::kLost || reason == MoveReason::kLate) {
    seat_->PutOut(now);
  }
  // A drain is orderly, and says nothing of the session.
  const bool is_limited = reason != MoveReason::kDraining;
  if (is_limited && moves_.IsReached(now)) return false;
  auto choice = ChooseOther(call);
  if (choice.seat == nullptr) return false;
  MoveGate::Turn turn;
  if (reason == MoveReason::kDraining) {
    // It goes on where it is until the other has time for it.
    turn = choice.seat->gate.Enter(TextLengthOf(call), now);
    if (!turn) return false;
  }
  OUTRIDER_LOG(kInfo, FieldsOf(call))
      << "moves from verifier " << seat_->link.address << " to "
      << choice.seat->link.address << ", as that is " << NameOf(reason)
      << (why.ok() ? "" : ": ") << (why.ok() ? "" : why.ToString());
  ++pool_.moves().of_verifiers[static_cast<int>(reason)];
  if (choice.description.numerics != description_.numerics) {
    ++pool_.moves().num_to_other_kernels;
  }
  if (is_limited) moves_.Moved(now);
  turn_ = std::move(turn);
  is_moved_ = true;
  failed_at_ = reason == MoveReason::kFailed ? seat_.get() : nullptr;
  Seat<VerifierNode> left = Take(std::move(choice));
  if (left.get() != seat_.get()) Leave(std::move(left), call);
  return true;
}

bool VerifierSeat::MayReopen() {
  const Clock::time_point now = Clock::now();
  if (moves_.IsReached(now)) return false;
  moves_.Moved(now);
  return true;
}

NodeGroup<VerifierNode>::Choice VerifierSeat::ChooseOther(
    const VerifyCall& call) {
  const Sameness sameness = PromiseOf(call);
  const auto choose = [&](Sameness wanted, bool is_own) {
    return ChooseRather(
        pool_, session_,
        [&](const VerifierNode&, const NodeDescription& answer) {
          return answer.max_draft_tokens >= use_.max_draft_tokens;
        },
        [&](const VerifierNode& node, const NodeDescription& answer) {
          return (&node == seat_.get()) == is_own && Fits(answer, call, wanted);
        });
  };
  auto choice = choose(sameness, /*is_own=*/false);
  if (choice.seat == nullptr && sameness == Sameness::kBits &&
      choose(sameness, /*is_own=*/true).seat == nullptr) {
    choice = choose(Sameness::kLaw, /*is_own=*/false);
    if (choice.seat == nullptr) choice = choose(Sameness::kLaw, true);
  }
  // What is not there either would only cost the session one of its moves.
  return choice.is_doubtful ? NodeGroup<VerifierNode>::Choice()
                            : std::move(choice);
}

bool VerifierSeat::Fits(const NodeDescription& node, const VerifyCall& call,
                        Sameness sameness) const {
  return CheckSame(description_.identity(), node.identity(), sameness).ok() &&
         CanServe(node, first_, use_) && RoomOf(node) >= TextLengthOf(call);
}

bool VerifierSeat::IsUnserved(const VerifyCall& call) {
  return pool_.HasVerifier() &&
         pool_.ChooseVerifier(session_, [&](const VerifierNode&,
                                            const NodeDescription& answer) {
                return Fits(answer, call, Sameness::kLaw);
              }).seat == nullptr;
}

bool VerifierSeat::IsModelGone() {
  return pool_.HasVerifier() &&
         pool_.ChooseVerifier(session_, [&](const VerifierNode&,
                                            const NodeDescription& answer) {
                return CheckSame(description_.identity(), answer.identity(),
                                 Sameness::kLaw)
                    .ok();
              }).seat == nullptr;
}

Task<void> VerifierSeat::TakeTurn(const VerifyCall& call,
                                  Cancellation& cancellation) {
  if (!is_moved_ && !is_suspect()) co_return;
  // Suspects come in as they came here, however often they are sent back.
  std::optional<Clock::time_point> rank;
  if (is_suspect()) rank = Clock::now();
  std::optional<MoveGate::Place> place;  // in the line of the seat's node
  while (!cancellation.cancelled()) {
    if (!turn_) {
      if (!place.has_value()) place.emplace(seat_->gate, rank);
      turn_ = place->Enter(TextLengthOf(call), Clock::now());
    }
    if (turn_ || (is_moved_ && TakeTurnElsewhere(call, place))) {
      place.reset();
      if (!is_suspect() || co_await suspicion_.Isolate(*seat_, cancellation)) {
        co_return;
      }
      GiveTurnBack();
      place.emplace(seat_->gate, rank);
    }
    co_await place->WaitForTurn(pool_.timer(), cancellation);
  }
}

bool VerifierSeat::TakeTurnElsewhere(const VerifyCall& call,
                                     std::optional<MoveGate::Place>& place) {
  const Clock::time_point now = Clock::now();
  const Sameness promise = PromiseOf(call);
  auto choice = pool_.ChooseVerifier(
      session_, [&](const VerifierNode& node, const NodeDescription& answer) {
        return &node != seat_.get() && &node != failed_at_ &&
               node.gate.IsOpen(now) && TakesDrafts(answer, call) &&
               Fits(answer, call, promise);
      });
  if (choice.seat == nullptr || choice.is_doubtful) return false;
  turn_ = choice.seat->gate.Enter(TextLengthOf(call), now);
  if (!turn_) return false;
  place.reset();  // before its gate
  // The one that it leaves has answered nothing, and is not told: it would take
  // the same step, if that comes there after all, for one that was released.
  // What it may have begun with ends with its lease.
  Take(std::move(choice));
  return true;
}

bool VerifierSeat::TakeRoomElsewhere(const VerifyCall& call,
                                     const Nodes& full) {
  const Clock::time_point now = Clock::now();
  // It is the youngest wherever it comes. Where it is known it grows old.
  const bool is_known = !call.header.incarnation.is_none();
  if (is_known && moves_for_room_.IsReached(now)) return false;
  const Sameness promise = PromiseOf(call);
  auto choice =
      ChooseRoom(pool_, session_, call,
                 [&](const VerifierNode& node, const NodeDescription& answer) {
                   return !absl::c_linear_search(full, &node) &&
                          node.gate.IsOpen(now) && Fits(answer, call, promise);
                 });
  if (choice.seat == nullptr || choice.is_doubtful) return false;
  // Who waited in its line would not be where there may be room meanwhile.
  MoveGate::Turn turn = choice.seat->gate.Enter(TextLengthOf(call), now);
  if (!turn) return false;
  turn_ = std::move(turn);
  is_moved_ = true;
  Seat<VerifierNode> left = Take(std::move(choice));
  if (is_known) {
    known_at_ = std::move(left);
    known_as_ = OwnNameOf(call);
  }
  return true;
}

void VerifierSeat::EndKnown() {
  if (known_at_ == nullptr) return;
  // Where it is back, its opening has ended what it had there.
  if (known_at_.get() == seat_.get()) return known_at_.reset();
  moves_for_room_.Moved(Clock::now());
  pool_.releases().Release(std::move(known_at_), known_as_);
}

void VerifierSeat::Answered(const VerifyReply& reply) {
  // A miss has computed nothing that the node could have died of.
  if (std::holds_alternative<Miss>(reply.outcome)) return;
  suspicion_.Answered();
  EndKnown();
  // One that is back where it was takes nothing from others: they are new too.
  const bool was_moved = std::exchange(is_moved_, false);
  turn_.End(was_moved ? OutcomeOf(reply.header) : MoveGate::Outcome());
}

void VerifierSeat::Leave(Seat<VerifierNode> seat, const VerifyCall& call) {
  pool_.releases().Release(std::move(seat), OwnNameOf(call));
}

void VerifierSeat::Release(RequestHeader header) {
  turn_ = {};
  EndKnown();
  pool_.releases().Release(std::move(seat_), std::move(header));
}

LogFields VerifierSeat::FieldsOf(const VerifyCall& call) const {
  return {{"request_id", call.log_ids.request_id},
          {"session", session_.ShortHex()}};
}

}  // namespace outrider
