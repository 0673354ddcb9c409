// SPDX-License-Identifier: Apache-2.0
#include "coordinator/pool/verifier_seat.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "coordinator/pool/same_model_stub.h"

namespace outrider {
namespace {

constexpr std::chrono::milliseconds kIsolateTimeout(500);

// What is each node's own affair: how much room it has, for whom its sessions
// share it, and how busy it is.
NodeDescription WithoutOwn(NodeDescription node) {
  node.model_name.clear();
  node.device.clear();
  node.build.clear();
  node.kv_cache_tokens = 0;
  node.kv_cache_bytes = 0;
  node.prefix_cache.clear();
  node.activity = {};
  return node;
}

}  // namespace

VerifierSeat::VerifierSeat(SessionPool& pool, const SessionId& session,
                           Seat<VerifierNode> seat,
                           const NodeDescription& description)
    : pool_(pool),
      session_(session),
      seat_(std::move(seat)),
      description_(WithoutOwn(description)),
      numerics_(description.numerics) {}

Seat<VerifierNode> VerifierSeat::TakeOther(const Nodes& avoided,
                                           bool even_doubtful) {
  auto choice = pool_.ChooseVerifier(
      session_, [&](const VerifierNode& node, const NodeDescription& answer) {
        return std::find(avoided.begin(), avoided.end(), &node) ==
                   avoided.end() &&
               WithoutOwn(answer) == description_;
      });
  if (choice.seat == nullptr || (choice.is_doubtful && !even_doubtful)) {
    return nullptr;
  }
  turn_ = {};
  return std::exchange(seat_, std::move(choice.seat));
}

bool VerifierSeat::Move(const VerifyCall& call, MoveReason reason,
                        const absl::Status& why) {
  const Clock::time_point now = Clock::now();
  if (reason == MoveReason::kLost || reason == MoveReason::kLate) {
    seat_->PutOut(now);
  }
  if (moves_.IsReached(now)) return false;
  auto choice = ChooseOther(PromiseOf(call.sampling, call.rule));
  if (choice.seat == nullptr) return false;
  MoveGate::Turn turn;
  if (reason == MoveReason::kDraining) {
    // It goes on where it is until the other has time for it.
    turn = choice.seat->gate.Enter(now);
    if (!turn) return false;
  }
  OUTRIDER_LOG(kInfo, FieldsOf(call))
      << "moves from verifier " << seat_->link.address << " to "
      << choice.seat->link.address << ", as that is " << NameOf(reason)
      << (why.ok() ? "" : ": ") << (why.ok() ? "" : why.ToString());
  ++pool_.moves().of_verifiers[static_cast<int>(reason)];
  if (choice.description.numerics != numerics_) {
    ++pool_.moves().num_to_other_kernels;
    numerics_ = choice.description.numerics;
  }
  moves_.Moved(now);
  turn_ = std::move(turn);
  is_moved_ = true;
  Seat<VerifierNode> left = std::exchange(seat_, std::move(choice.seat));
  if (left.get() != seat_.get()) Leave(std::move(left), call);
  return true;
}

NodeGroup<VerifierNode>::Choice VerifierSeat::ChooseOther(Sameness sameness) {
  const auto choose = [&](Sameness wanted, bool is_own) {
    return pool_.ChooseVerifier(
        session_, [&](const VerifierNode& node, const NodeDescription& answer) {
          return (&node == seat_.get()) == is_own && IsAlike(answer, wanted);
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

bool VerifierSeat::IsAlike(const NodeDescription& node,
                           Sameness sameness) const {
  NodeDescription wanted = description_;
  NodeDescription other = WithoutOwn(node);
  wanted.numerics = sameness == Sameness::kLaw ? other.numerics : numerics_;
  return other == wanted;
}

bool VerifierSeat::IsModelGone() {
  return pool_.HasVerifier() &&
         pool_.ChooseVerifier(session_, [&](const VerifierNode&,
                                            const NodeDescription& answer) {
                return IsAlike(answer, Sameness::kLaw);
              }).seat == nullptr;
}

Task<void> VerifierSeat::TakeTurn(const VerifyCall& call,
                                  Cancellation& cancellation) {
  if (!is_moved_ && !is_suspect()) co_return;
  while (!cancellation.cancelled()) {
    const Clock::time_point now = Clock::now();
    if (!turn_) turn_ = seat_->gate.Enter(now);
    const bool has_turn = turn_ || (is_moved_ && TakeTurnElsewhere(call, now));
    if (has_turn && !is_suspect()) co_return;
    if (has_turn && co_await Isolate(cancellation)) co_return;
    GiveTurnBack();
    co_await pool_.timer().Sleep(seat_->gate.Wait(now), cancellation);
  }
}

Task<bool> VerifierSeat::Isolate(Cancellation& cancellation) {
  const auto granted =
      co_await seat_->stub->Isolate(session_, kIsolateTimeout, cancellation);
  // An older node knows no suspects of others. One that does not answer is
  // found to be lost or late by the step, which then says nothing of the
  // session.
  is_alone_ = granted.ok() || absl::IsUnimplemented(granted.status());
  co_return !granted.ok() || *granted;
}

bool VerifierSeat::TakeTurnElsewhere(const VerifyCall& call,
                                     Clock::time_point now) {
  auto choice = pool_.ChooseVerifier(
      session_, [&](const VerifierNode& node, const NodeDescription& answer) {
        return &node != seat_.get() && node.gate.IsOpen(now) &&
               IsAlike(answer, Sameness::kBits);
      });
  if (choice.seat == nullptr || choice.is_doubtful) return false;
  turn_ = choice.seat->gate.Enter(now);
  if (!turn_) return false;
  Leave(std::exchange(seat_, std::move(choice.seat)), call);
  return true;
}

void VerifierSeat::Answered(const VerifyReply& reply) {
  // A miss has computed nothing that the node could have died of.
  if (std::holds_alternative<Miss>(reply.outcome)) return;
  num_lost_ = 0;
  // One that is back where it was takes nothing from others: they are new too.
  const double seconds =
      std::exchange(is_moved_, false) ? reply.header.compute_seconds : 0;
  turn_.End(std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(seconds)));
}

void VerifierSeat::Leave(Seat<VerifierNode> seat, const VerifyCall& call) {
  pool_.releases().Release(std::move(seat),
                           {.session = session_,
                            .incarnation = call.header.incarnation,
                            .step = call.header.step});
}

void VerifierSeat::Release(RequestHeader header) {
  turn_ = {};
  pool_.releases().Release(std::move(seat_), std::move(header));
}

LogFields VerifierSeat::FieldsOf(const VerifyCall& call) const {
  return {{"request_id", call.log_ids.request_id},
          {"session", session_.ShortHex()}};
}

}  // namespace outrider
