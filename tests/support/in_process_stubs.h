// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_IN_PROCESS_STUBS_H_
#define OUTRIDER_TESTS_SUPPORT_IN_PROCESS_STUBS_H_

#include <cstdint>
#include <functional>

#include "absl/hash/hash.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "coordinator/peers/node_stub.h"
#include "core/wire/node_calls.h"
#include "tests/support/toy_nodes.h"

namespace outrider::testing {

// Stands for a hash over the bytes of a request: equal for equal content.
inline uint64_t ContentDigest(const RequestHeader& header,
                              const std::vector<TokenId>& drafts,
                              int max_draft_tokens) {
  return absl::HashOf(header.session, header.incarnation, header.step,
                      header.delta.keep_length, header.delta.append_tokens,
                      header.prefix_hash.value_or(0), header.cache_salt, drafts,
                      max_draft_tokens);
}
inline uint64_t ContentDigest(const DraftCall& call) {
  return absl::HashOf(
      ContentDigest(call.header, call.in_flight_tokens, call.max_draft_tokens),
      call.max_outcomes, call.acceptance);
}
inline uint64_t ContentDigest(const VerifyCall& call) {
  return ContentDigest(call.header, call.draft_tokens, 0);
}

// What a test does to the calls that pass through a stub.
template <typename Call, typename Reply>
struct StubHooks {
  // How often the node sees each call: the same step, the same bytes. The
  // last reply counts.
  int num_deliveries = 1;
  // Runs before the node sees the call; where it fails the call never arrives.
  std::function<absl::Status(const Call&)> before = {};
  // The node's state has changed: may alter the reply, or lose it.
  std::function<absl::Status(const Call&, Reply&)> after = {};
};
using DraftHooks = StubHooks<DraftCall, DraftReply>;
using VerifyHooks = StubHooks<VerifyCall, VerifyReply>;

// Carries calls to a node by a function call; its tasks never wait.
class InProcessDraftStub final : public DraftStub {
 public:
  explicit InProcessDraftStub(DraftNode& node) : node_(&node) {}

  Task<absl::StatusOr<DraftReply>> Draft(const DraftCall& call,
                                         Cancellation&) override {
    co_return Deliver(call);
  }

  DraftHooks& hooks() { return hooks_; }
  // Another process behind the same address.
  void Restart(DraftNode& node) { node_ = &node; }
  int num_calls() const { return num_calls_; }

 private:
  absl::StatusOr<DraftReply> Deliver(const DraftCall& call) {
    ++num_calls_;
    absl::Status fate = hooks_.before ? hooks_.before(call) : absl::OkStatus();
    if (!fate.ok()) return fate;
    absl::StatusOr<DraftReply> reply;
    for (int i = 0; i < hooks_.num_deliveries; ++i) {
      reply = node_->Run(call, ContentDigest(call));
    }
    if (reply.ok() && hooks_.after) fate = hooks_.after(call, *reply);
    if (!fate.ok()) return fate;
    return reply;
  }

  DraftNode* node_;
  DraftHooks hooks_;
  int num_calls_ = 0;
};

class InProcessVerifyStub final : public VerifyStub {
 public:
  explicit InProcessVerifyStub(VerifyNode& node) : node_(&node) {}

  int MostDrafts(int) const override { return most_drafts_; }
  void set_most_drafts(int most) { most_drafts_ = most; }
  Task<absl::StatusOr<VerifyReply>> Verify(const VerifyCall& call,
                                           Cancellation&) override {
    co_return Deliver(call);
  }

  VerifyHooks& hooks() { return hooks_; }
  void Restart(VerifyNode& node) { node_ = &node; }
  int num_calls() const { return num_calls_; }

 private:
  absl::StatusOr<VerifyReply> Deliver(const VerifyCall& call) {
    ++num_calls_;
    absl::Status fate = hooks_.before ? hooks_.before(call) : absl::OkStatus();
    if (!fate.ok()) return fate;
    absl::StatusOr<VerifyReply> reply;
    for (int i = 0; i < hooks_.num_deliveries; ++i) {
      reply = node_->Run(call, ContentDigest(call));
    }
    if (reply.ok() && hooks_.after) fate = hooks_.after(call, *reply);
    if (!fate.ok()) return fate;
    return reply;
  }

  VerifyNode* node_;
  int most_drafts_ = 1 << 20;
  VerifyHooks hooks_;
  int num_calls_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_IN_PROCESS_STUBS_H_
