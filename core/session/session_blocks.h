// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SESSION_SESSION_BLOCKS_H_
#define OUTRIDER_CORE_SESSION_SESSION_BLOCKS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/base/kv_block.h"
#include "core/base/token.h"
#include "core/session/free_block_count.h"
#include "core/session/kv_block_pool.h"
#include "core/session/node_session.h"
#include "core/session/prefix_cache.h"

namespace outrider {

// What the tables of a node's sessions hold: grows, cuts and shares them, so
// that each has the blocks that its log needs. A session begins with what those
// of its salt have left in full blocks. These are never written again: who is
// to write in one gets it as cut before its beginning, and then a new block.
// Confined to the scheduler.
class SessionBlocks {
 public:
  SessionBlocks(int num_blocks, PrefixSharing sharing)
      : sharing_(sharing),
        pool_(num_blocks),
        prefixes_(pool_),
        free_count_(pool_) {}

  const KvBlockPool& pool() const { return pool_; }
  // A token that several sessions share counts for each of them.
  int64_t num_cached_tokens() const { return num_cached_tokens_; }

  // The salt under which a session of this one shares; nothing: it does not.
  std::optional<std::string> SaltOf(const std::string& salt) const {
    return SharedSalt(sharing_, salt);
  }

  // Blocks with the first of these tokens, never with the last one, whose row
  // is wanted. They hold them until blocks are taken: who finds them is no
  // owner, and leaves them as old as they are.
  std::vector<KvBlockId> FindPrefix(const std::optional<std::string>& salt,
                                    absl::Span<const TokenId> tokens) const;
  // An empty session begins with such blocks, as one more owner, and with the
  // tokens that they hold.
  void Begin(NodeSession& session, std::vector<KvBlockId> prefix,
             absl::Span<const TokenId> tokens);
  // So many more, which there are.
  void Take(NodeSession& session, int count);

  void Append(NodeSession& session, absl::Span<const TokenId> tokens);
  // The log ends at this length; Cut gives the blocks beyond back, too.
  void Forget(NodeSession& session, int length);
  void Cut(NodeSession& session, int length);
  // The longest length, at most this one, after which the session may write.
  int WritableLength(const NodeSession& session, int length) const;
  // Makes branches for the first of the forks, as many as leave so many blocks
  // free, and ends all of them.
  int MakeBranches(NodeSession& session, absl::Span<const Fork> forks,
                   int num_left);
  void EndBranches(NodeSession& session);
  int num_branch_blocks() const { return num_branch_blocks_; }  // theirs alone
  FreeBlockCount& free_count() { return free_count_; }
  const FreeBlockCount& free_count() const { return free_count_; }
  // Gives back the blocks after the first so many.
  void KeepFirst(NodeSession& session, int num_blocks);
  // Others may begin with the full blocks of the session's first tokens.
  void ShareUpTo(NodeSession& session, int length);
  // Nobody comes back for the text of its salt: it is kept no longer, but for
  // what others share. Without a salt anybody may begin with it.
  void EndText(NodeSession& session);
  // Nobody any more may begin with what the session has.
  void Distrust(NodeSession& session);

  // Whether a session holds what its log says, and may write what comes next.
  bool HoldsItsText(const NodeSession& session) const;

 private:
  Branch MakeBranch(const NodeSession& session, const Fork& fork);

  const PrefixSharing sharing_;
  KvBlockPool pool_;
  PrefixCache prefixes_;
  FreeBlockCount free_count_;
  int64_t num_cached_tokens_ = 0;
  int num_branch_blocks_ = 0;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SESSION_SESSION_BLOCKS_H_
