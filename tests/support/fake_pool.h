// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_FAKE_POOL_H_
#define OUTRIDER_TESTS_SUPPORT_FAKE_POOL_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "coordinator/nodes/session_pool.h"
#include "tests/support/event_loop.h"
#include "tests/support/fake_verifier.h"
#include "tests/support/loop_timer.h"

namespace outrider::testing {

inline constexpr char kFakeVerifiers[] = "verifiers:7002";

// Verifiers at 1.1.1.0:1 and so on, each asked four times a second what it is.
class FakePool : public SessionPool {
 public:
  FakePool(EventLoop& loop, std::vector<FakeProcess>& processes)
      : loop_(loop), processes_(processes), timer_(loop) {
    std::vector<std::string> addresses;
    for (size_t i = 0; i < processes.size(); ++i) {
      addresses.push_back(absl::StrCat("1.1.1.", i, ":1"));
    }
    group_.SetAddresses(kFakeVerifiers, addresses);
    Ask();
    Look();
  }

  NodeGroup<VerifierNode>::Choice ChooseVerifier(
      const SessionId& session,
      const NodeGroup<VerifierNode>::Fits& fits) override {
    return group_.Choose(session, fits);
  }
  NodeGroup<DrafterNode>::Choice ChooseDrafter(
      const SessionId&, const NodeGroup<DrafterNode>::Fits&) override {
    return {};
  }
  void Doubt(const VerifierNode& node, const ModelIdentity& model) override {
    if (group_.Doubt(node, model)) AskThese(group_.TakeToAsk());
  }
  void Doubt(const DrafterNode&, const ModelIdentity&) override {}
  void Correct(const VerifierNode& node, const NodeDescription& said) override {
    group_.Correct(node, said);
    Assess();
  }
  int NumVerifiersReady() const override { return num_ready_; }
  Timer& timer() override { return timer_; }
  WaitingRoom& waiting_room() override { return room_; }
  NodeReleases& releases() override { return releases_; }
  SessionMoves& moves() override { return moves_; }
  VerifierLosses& losses() override { return losses_; }

  void Ask() {
    AskThese(group_.TakeToAsk());
    loop_.After(std::chrono::milliseconds(250), [this] {
      if (!is_closed) Ask();
    });
  }

  bool is_closed = false;

 private:
  void Look() {
    AskThese(group_.TakeQuiet());
    loop_.After(NodeGroup<VerifierNode>::kLookPeriod, [this] {
      if (!is_closed) Look();
    });
  }
  void AskThese(const std::vector<VerifierNode*>& nodes) {
    for (VerifierNode* node : nodes) StartDetached(Learn(*node));
    Assess();
  }
  Task<void> Learn(VerifierNode& node) {
    group_.Learn(node, co_await node.stub->Describe(
                           std::chrono::milliseconds(1000), none_));
    Assess();
  }
  void Assess() {
    AssessVerifiers(group_.knowledge(), {}, tokenizer_);
    num_ready_ = group_.CountReady();
    group_.FindOthers();
  }
  std::unique_ptr<VerifierNode> Make(const std::string& name,
                                     const std::string& address) {
    FakeProcess& process = processes_[num_made_++];
    return std::unique_ptr<VerifierNode>(new VerifierNode{
        .link = {.name = name,
                 .address = address,
                 .is_connected = [&process] { return process.is_up; }},
        .stub = std::make_unique<FakeStub>(loop_, process),
        .cache = std::make_unique<FakeCache>(process)});
  }

  EventLoop& loop_;
  std::vector<FakeProcess>& processes_;
  LoopTimer timer_;
  Cancellation none_;  // but of what is asked when it goes
  size_t num_made_ = 0;
  int num_ready_ = 0;
  std::string tokenizer_;
  NodeGroup<VerifierNode> group_{
      {kFakeVerifiers},
      [this](const std::string& name, const std::string& address) {
        return Make(name, address);
      }};
  WaitingRoom room_{/*max_waiting=*/64};
  SessionMoves moves_;
  VerifierLosses losses_;
  NodeReleases releases_{room_};
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_FAKE_POOL_H_
