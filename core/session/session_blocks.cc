// SPDX-License-Identifier: Apache-2.0
#include "core/session/session_blocks.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/base/check.h"
#include "core/base/mutant.h"

namespace outrider {

std::vector<KvBlockId> SessionBlocks::FindPrefix(
    const std::optional<std::string>& salt,
    absl::Span<const TokenId> tokens) const {
  if (!salt.has_value() || tokens.empty()) return {};
  return prefixes_.Find(*salt, tokens.first(tokens.size() - 1));
}

void SessionBlocks::Begin(NodeSession& session, std::vector<KvBlockId> prefix,
                          absl::Span<const TokenId> tokens) {
  OUTRIDER_CHECK(session.blocks.empty() && session.log.length() == 0);
  pool_.Share(prefix);
  session.blocks = std::move(prefix);
  Append(session, tokens.first(session.blocks.size() * kKvBlockLength));
}

void SessionBlocks::Take(NodeSession& session, int count) {
  OUTRIDER_CHECK(prefixes_.Take(count, session.blocks));
}

void SessionBlocks::Append(NodeSession& session,
                           absl::Span<const TokenId> tokens) {
  session.log.Append(tokens);
  num_cached_tokens_ += static_cast<int64_t>(tokens.size());
  OUTRIDER_CHECK(NumKvBlocks(session.log.length()) <=
                 static_cast<int>(session.blocks.size()));
}

void SessionBlocks::Forget(NodeSession& session, int length) {
  num_cached_tokens_ -= session.log.length() - length;
  session.log.TruncateTo(length);
}

void SessionBlocks::Cut(NodeSession& session, int length) {
  if (length >= session.log.length()) return;
  Forget(session, length);
  KeepFirst(session, NumKvBlocks(length));
}

int SessionBlocks::WritableLength(const NodeSession& session,
                                  int length) const {
  const int num_full = length / kKvBlockLength;
  const int full_length = num_full * kKvBlockLength;
  if (length == full_length) return length;
  const bool is_writable = pool_.IsWritable(session.blocks[num_full]);
  return OUTRIDER_MUTANT(E5, is_writable, true) ? length : full_length;
}

int SessionBlocks::MakeBranches(NodeSession& session,
                                absl::Span<const Fork> forks, int num_left) {
  OUTRIDER_CHECK(session.branches.empty());
  for (const Fork& fork : forks) {
    const int num_new =
        NumKvBlocks(fork.max_length) - fork.length / kKvBlockLength;
    if (pool_.num_free() < num_new + num_left) break;
    session.branches.push_back(MakeBranch(session, fork));
    num_branch_blocks_ += num_new;
  }
  return static_cast<int>(session.branches.size());
}

Branch SessionBlocks::MakeBranch(const NodeSession& session, const Fork& fork) {
  OUTRIDER_CHECK(fork.length <= session.log.length());
  const int num_full = fork.length / kKvBlockLength;
  const int num_shared =
      OUTRIDER_MUTANT(E7, num_full, NumKvBlocks(fork.length));
  const auto shared = absl::MakeConstSpan(session.blocks).first(num_shared);
  Branch branch = {.blocks = {shared.begin(), shared.end()},
                   .length = fork.length};
  pool_.Share(shared);
  OUTRIDER_CHECK(
      prefixes_.Take(NumKvBlocks(fork.max_length) - num_shared, branch.blocks));
  if (fork.length > num_shared * kKvBlockLength) {
    branch.copied_block = session.blocks[num_full];
  }
  return branch;
}

void SessionBlocks::EndBranches(NodeSession& session) {
  const int num_free = pool_.num_free();
  for (const Branch& branch : session.branches) pool_.GiveBack(branch.blocks);
  session.branches.clear();
  num_branch_blocks_ -= pool_.num_free() - num_free;
}

void SessionBlocks::KeepFirst(NodeSession& session, int num_blocks) {
  std::vector<KvBlockId>& blocks = session.blocks;
  if (num_blocks >= static_cast<int>(blocks.size())) return;
  pool_.GiveBack(absl::MakeConstSpan(blocks).subspan(num_blocks));
  blocks.resize(num_blocks);
}

void SessionBlocks::ShareUpTo(NodeSession& session, int length) {
  if (!session.salt.has_value()) return;
  prefixes_.Enter(*session.salt, session.log.tokens().first(length),
                  session.blocks);
}

void SessionBlocks::EndText(NodeSession& session) {
  if (!session.salt.has_value() || session.salt->empty()) return;
  std::vector<KvBlockId> own;
  std::copy_if(session.blocks.begin(), session.blocks.end(),
               std::back_inserter(own),
               [this](KvBlockId block) { return pool_.HasOneOwner(block); });
  prefixes_.Forget(own);
  session.salt.reset();
}

void SessionBlocks::Distrust(NodeSession& session) {
  prefixes_.Distrust(session.blocks);
  session.salt.reset();
}

bool SessionBlocks::HoldsItsText(const NodeSession& session) const {
  absl::Span<const TokenId> tokens = session.log.tokens();
  for (const KvBlockId block : session.blocks) {
    const bool is_full = tokens.size() >= kKvBlockLength;
    if (is_full ? !prefixes_.MayHold(block, tokens.first(kKvBlockLength))
                : !pool_.IsWritable(block)) {
      return false;
    }
    tokens.remove_prefix(std::min<size_t>(kKvBlockLength, tokens.size()));
  }
  return true;
}

}  // namespace outrider
