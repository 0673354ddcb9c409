// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_SUPPORT_FAKE_DRAFTERS_H_
#define OUTRIDER_TESTS_SUPPORT_FAKE_DRAFTERS_H_

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/nodes/node.h"
#include "coordinator/nodes/node_group.h"
#include "core/base/cancellation.h"
#include "core/base/session_id.h"
#include "core/base/task.h"
#include "core/session/cache_delta.h"
#include "core/wire/node_description.h"
#include "tests/support/event_loop.h"
#include "tests/support/fake_pool.h"
#include "tests/support/fake_verifier.h"

namespace outrider::testing {

// A process that is started again when it has died, and knows nothing then.
struct DrafterProcess {
  bool is_up = true;
  bool is_draining = false;
  std::chrono::milliseconds pass{10};
  bool is_silent = false;  // it answers nothing at all
  bool is_full = false;
  bool refuses_ahead = false;
  int max_draft_tokens = 4;
  int num_refusals = 0;
  int num_deaths = 0;
  std::map<SessionId, Incarnation> live = {};
  // Sessions under whose last call it died.
  std::set<SessionId> suspects = {};
  int num_suspects_in_flight = 0;
  int most_suspects_in_flight = 0;
  // This session's texts of so many tokens take it down.
  std::optional<SessionId> poison = {};
  int poison_from = 0;

  void Die() {
    is_up = false;
    ++num_deaths;
    live.clear();
  }
};

// Drafters, each asked four times a second what it is.
class DrafterPool final : public FakePool {
 public:
  DrafterPool(EventLoop& loop, std::vector<FakeProcess>& verifiers,
              std::vector<DrafterProcess>& drafters);

  NodeGroup<DrafterNode>::Choice ChooseDrafter(
      const SessionId& session,
      const NodeGroup<DrafterNode>::Fits& fits) override {
    return group_.Choose(session, fits);
  }

 private:
  void Ask() {
    for (DrafterNode* node : group_.TakeToAsk()) StartDetached(Learn(*node));
    loop_.After(std::chrono::milliseconds(250), [this] {
      if (!is_closed) Ask();
    });
  }
  void Look() {
    for (DrafterNode* node : group_.TakeQuiet()) StartDetached(Learn(*node));
    loop_.After(NodeGroup<DrafterNode>::kLookPeriod, [this] {
      if (!is_closed) Look();
    });
  }
  Task<void> Learn(DrafterNode& node);
  std::unique_ptr<DrafterNode> Make(const std::string& name,
                                    const std::string& address);

  EventLoop& loop_;
  std::vector<DrafterProcess>& drafters_;
  Cancellation none_;
  size_t num_made_ = 0;
  const NodeDescription verifier_ = {
      .vocab_size = 10, .context_length = 100000, .max_draft_tokens = 4};
  NodeGroup<DrafterNode> group_{
      {"drafters"},
      [this](const std::string& name, const std::string& address) {
        return Make(name, address);
      }};
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_SUPPORT_FAKE_DRAFTERS_H_
