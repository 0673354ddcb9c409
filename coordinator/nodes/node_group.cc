// SPDX-License-Identifier: Apache-2.0
#include "coordinator/nodes/node_group.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "core/base/node_drains.h"

namespace outrider {
namespace {

// Who has not looked for so long was stopped, or has had no processor. Far
// below what a node is given to answer.
constexpr std::chrono::milliseconds kStandStill(150);

}  // namespace

template <typename NodeType>
void NodeGroup<NodeType>::SetAddresses(
    const std::string& name, const std::vector<std::string>& addresses) {
  if (!Has(name)) return;
  std::vector<std::string> added = addresses;
  for (Member& member : members_) {
    const NodeLink& link = member.node->link;
    if (link.name != name) continue;
    member.is_lost = addresses.empty() && member.knowledge.ready();
    if (member.is_lost) continue;
    const bool is_listed = std::erase(added, link.address) > 0;
    if (!is_listed) member.node->link.is_leaving = true;
    // What it said before it left says nothing of what comes back.
    if (is_listed != member.knowledge.is_listed) {
      member.knowledge = {
          .name = name, .address = link.address, .is_listed = is_listed};
    }
  }
  for (const std::string& address : added) {
    members_.push_back({.node = make_(name, address),
                        .knowledge = {.name = name, .address = address}});
  }
}

template <typename NodeType>
void NodeGroup<NodeType>::DropUnused() {
  std::erase_if(members_, [](const Member& member) {
    return !member.knowledge.is_listed && !member.is_asked &&
           member.node->link.num_sessions.load(std::memory_order_acquire) == 0;
  });
}

template <typename NodeType>
std::vector<NodeType*> NodeGroup<NodeType>::TakeToAsk() {
  std::vector<NodeType*> nodes;
  for (Member& member : members_) {
    if (member.is_asked || !member.knowledge.is_listed) continue;
    nodes.push_back(Ask(member));
  }
  return nodes;
}

template <typename NodeType>
NodeType* NodeGroup<NodeType>::Ask(Member& member) {
  member.is_asked = true;
  member.asked_at = Clock::now();
  member.node->link.pulse.Asked(member.asked_at);
  return member.node.get();
}

template <typename NodeType>
std::vector<NodeType*> NodeGroup<NodeType>::TakeQuiet(
    bool is_other_quiet, Clock::time_point other_heard_at) {
  const Clock::time_point now = Clock::now();
  const bool was_away = now - std::exchange(looked_at_, now) > kStandStill;
  const Heard own = Listen();
  // A verifier's calls need another verifier to go to.
  const Clock::time_point heard_at =
      NodeType::kIsNeeded ? own.last : std::max(own.last, other_heard_at);
  std::vector<NodeType*> nodes;
  for (Member& member : members_) {
    Pulse& pulse = member.node->link.pulse;
    if (was_away) pulse.ListenAnew(now);
    // One that its name does not have any more is not asked.
    if (!member.is_asked && !member.knowledge.is_listed) continue;
    if (pulse.IsQuiet(now)) {
      if (pulse.IsSilent(now, heard_at)) pulse.GiveUp();
      pulse.Asked(now);  // by the question that is under way, if one is
    }
    const bool is_missed = (own.is_any_quiet || is_other_quiet) &&
                           now - pulse.heard_at() > Pulse::kQuiet;
    // Sessions may be waiting for one that is gone to come back.
    const bool is_gone =
        !member.knowledge.answer.ok() && now - member.asked_at >= kGonePeriod;
    if (!member.is_asked && (is_missed || is_gone)) {
      nodes.push_back(Ask(member));
    }
  }
  return nodes;
}

template <typename NodeType>
typename NodeGroup<NodeType>::Heard NodeGroup<NodeType>::Listen() const {
  const Clock::time_point now = Clock::now();
  Heard heard;
  for (const Member& member : members_) {
    const Pulse& pulse = member.node->link.pulse;
    heard.is_any_quiet = heard.is_any_quiet || pulse.IsQuiet(now);
    heard.last = std::max(heard.last, pulse.heard_at());
  }
  return heard;
}

template <typename NodeType>
bool NodeGroup<NodeType>::Doubt(const NodeType& node,
                                const ModelIdentity& model) {
  for (Member& member : members_) {
    absl::StatusOr<NodeDescription>& answer = member.knowledge.answer;
    if (member.node.get() != &node || !answer.ok()) continue;
    if (answer->identity() == model) return false;
    answer = absl::UnavailableError("it is another model now");
    return true;
  }
  return false;
}

template <typename NodeType>
void NodeGroup<NodeType>::Correct(const NodeType& node,
                                  const NodeDescription& said) {
  for (Member& member : members_) {
    const bool is_it = member.node.get() == &node;
    if (is_it && member.knowledge.answer.ok()) member.knowledge.answer = said;
  }
}

template <typename NodeType>
void NodeGroup<NodeType>::Learn(const NodeType& node,
                                absl::StatusOr<NodeDescription> answer) {
  for (Member& member : members_) {
    if (member.node.get() != &node) continue;
    member.is_asked = false;
    bool was_away = !member.knowledge.answer.ok();
    if (answer.ok()) {
      const Clock::time_point now = Clock::now();
      // One that hung for a moment was forgiven its late answer, and yet its
      // sessions have put it out.
      was_away |= member.node->link.pulse.Answered(now - member.asked_at, now);
    } else if (!absl::IsDeadlineExceeded(answer.status())) {
      member.node->link.pulse.Refused();
    }
    const bool was_late = std::exchange(
        member.is_late, absl::IsDeadlineExceeded(answer.status()));
    const bool is_forgiven =
        member.is_late && !was_late && member.knowledge.answer.ok();
    if (is_forgiven) return;
    if (answer.ok() && was_away) member.node->Returned();
    if (answer.ok() && member.knowledge.is_listed) {
      member.node->link.is_leaving = false;
    } else if (IsNodeDrains(answer.status())) {
      member.node->link.is_leaving = true;
    }
    if (!answer.ok() && member.is_lost) member.knowledge.is_listed = false;
    member.knowledge.answer = std::move(answer);
    return;
  }
}

template <typename NodeType>
int NodeGroup<NodeType>::CountReady() const {
  return static_cast<int>(std::count_if(
      members_.begin(), members_.end(),
      [](const Member& member) { return member.knowledge.ready(); }));
}

template <typename NodeType>
void NodeGroup<NodeType>::FindOthers() {
  std::vector<std::pair<ModelIdentity, int>> models;  // those that are ready
  const auto num_of = [&](const ModelIdentity& model) -> int& {
    const auto found =
        std::find_if(models.begin(), models.end(),
                     [&](const auto& known) { return known.first == model; });
    return found != models.end() ? found->second
                                 : models.emplace_back(model, 0).second;
  };
  for (Member& member : members_) {
    const NodeKnowledge& knowledge = member.knowledge;
    if (knowledge.answer.ok()) {
      member.model = knowledge.answer->identity();
      member.model.numerics.clear();
    }
    if (knowledge.ready()) ++num_of(member.model);
  }
  for (const Member& member : members_) {
    member.node->link.has_other =
        num_of(member.model) > (member.knowledge.ready() ? 1 : 0);
  }
}

template <typename NodeType>
std::vector<NodeKnowledge*> NodeGroup<NodeType>::knowledge() {
  std::vector<NodeKnowledge*> all;
  for (Member& member : members_) all.push_back(&member.knowledge);
  return all;
}

template <typename NodeType>
std::vector<const NodeKnowledge*> NodeGroup<NodeType>::knowledge() const {
  std::vector<const NodeKnowledge*> all;
  for (const Member& member : members_) all.push_back(&member.knowledge);
  return all;
}

template <typename NodeType>
bool NodeGroup<NodeType>::IsServed(const std::string& name) const {
  return !Has(name) || std::any_of(members_.begin(), members_.end(),
                                   [&](const Member& member) {
                                     return member.node->link.name == name &&
                                            member.knowledge.ready();
                                   });
}

template <typename NodeType>
NodeCandidate NodeGroup<NodeType>::CandidateOf(const Member& member) {
  return {.address = member.node->link.address,
          .is_doubtful = member.is_late || member.node->is_doubtful(),
          .num_sessions = member.node->link.load()};
}

template <typename NodeType>
typename NodeGroup<NodeType>::Choice NodeGroup<NodeType>::Choose(
    const SessionId& session, const Fits& fits, absl::string_view cache_salt) {
  std::vector<const Member*> ready;
  std::vector<NodeCandidate> candidates;
  for (const Member& member : members_) {
    if (!IsOpen(member) ||
        (fits && !fits(*member.node, *member.knowledge.answer))) {
      continue;
    }
    ready.push_back(&member);
    candidates.push_back(CandidateOf(member));
  }
  const std::optional<size_t> index =
      ChooseNode(session, cache_salt, candidates);
  if (!index.has_value()) return {};
  const Member& chosen = *ready[*index];
  ++chosen.node->link.num_sessions;
  return {.seat = Seat<NodeType>(chosen.node.get()),
          .description = *chosen.knowledge.answer,
          .is_doubtful = candidates[*index].is_doubtful};
}

template <typename NodeType>
std::string NodeGroup<NodeType>::DrawSalt(const NodeType& home) const {
  std::vector<NodeCandidate> candidates;
  size_t index = 0;
  for (const Member& member : members_) {
    if (member.node.get() == &home) index = candidates.size();
    if (member.node.get() == &home || IsOpen(member)) {
      candidates.push_back(CandidateOf(member));
    }
  }
  return outrider::DrawSalt(SessionId::Random(), index, candidates);
}

template <typename NodeType>
bool NodeGroup<NodeType>::Has(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

template class NodeGroup<DrafterNode>;
template class NodeGroup<VerifierNode>;

}  // namespace outrider
