// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TESTING_TABLE_LM_H_
#define OUTRIDER_CORE_TESTING_TABLE_LM_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/model/block_entries.h"
#include "core/model/causal_lm.h"

namespace outrider::testing {

// A CausalLm whose logits are a function of the context. Its blocks hold the
// tokens themselves, so that a wrong table or length, a block freed too early
// or written while shared becomes a wrong context, and a wrong context another
// distribution. One thread at a time.
class TableLm final : public CausalLm {
 public:
  // Stands in a context where an entry was read that nobody wrote.
  static constexpr TokenId kPoison = -1;
  static constexpr int64_t kBlockBytes = kKvBlockLength * sizeof(TokenId);

  // [vocab_size] logits of the token after `context`.
  using Table =
      std::function<std::vector<float>(absl::Span<const TokenId> context)>;
  // Says how many entries a cache leaves that cuts wrongly. Such a model
  // keeps the context of a session, known by its first block, outside of the
  // blocks.
  struct CutView {
    int num_entries = 0;    // those that are really there
    int cached_length = 0;  // what should be there; equal in a correct cache
    int num_appended = 0;   // by the call before this one
    int keep_length = 0;    // the extension's cached_length
  };
  using Cut = std::function<int(const CutView&)>;
  // What it answers to a question about a row; nothing: the whole row.
  using Answer = std::function<std::optional<RowAnswer>(
      const RowQuestion& question, absl::Span<const float> logits)>;

  // What it runs after a row of which it answered the question, and after so
  // many guesses before: a guess of what comes there. Nothing: it does not go
  // on.
  using Guess = std::function<std::optional<TokenId>(
      const RowQuestion& question, const TopAnswer& answer, int num_drawn)>;

  struct Options {
    Table table = {};
    int vocab_size = 0;
    int context_length = 1 << 20;
    std::vector<TokenId> eos_ids = {};
    int64_t kv_bytes = (1 << 15) * kBlockBytes;  // what it has for blocks
    Cut cut = {};        // empty: keep_length, as it should be
    Answer answer = {};  // empty: it has whole rows for whoever asks
    Guess guess = {};    // empty: it never goes on by itself
  };

  explicit TableLm(Options options);

  const ModelInfo& info() const override { return info_; }
  bool answers_questions() const override { return bool{options_.answer}; }
  int64_t AvailableKvBytes() const override { return available_kv_bytes_; }
  absl::Status AllocateKvBlocks(int num_blocks) override;
  std::unique_ptr<PendingPass> Launch(
      absl::Span<const Extension> batch) override;

  // What a block's last owner gave back: whoever reads on reads poison.
  void PoisonKvBlock(KvBlockId block) { blocks_.Clear(block); }
  // The first `length` tokens that a table's blocks hold.
  TokenSeq Context(absl::Span<const KvBlockId> table, int length) const {
    return blocks_.First(table, length);
  }
  // Tokens run through the model so far, over all sessions.
  int num_tokens_run() const { return num_tokens_run_; }
  // Passes that it took, and poison read in them.
  int num_passes() const { return num_passes_; }
  int num_poison_reads() const { return num_poison_reads_; }

 private:
  // The context after an extension's tokens.
  TokenSeq ContextOf(const Extension& extension);
  TokenSeq WronglyCut(const Extension& extension);
  LogitRows Rows(const TokenSeq& context, int num_rows) const;
  std::vector<LogitRows::AskedRow> Answered(
      const LogitRows& rows, absl::Span<const RowQuestion> questions) const;
  // Runs what it guesses, and adds the rows of that. What it ran.
  std::vector<TokenId> GoOn(const Extension& extension,
                            std::vector<LogitRows::AskedRow>& rows);

  struct Wrong {
    TokenSeq tokens = {};
    int cached_length = 0;  // as the caller knows it
    int num_appended = 0;   // last
  };

  const Options options_;
  ModelInfo info_;
  int64_t available_kv_bytes_ = 0;
  BlockEntries<TokenId> blocks_{kPoison};
  absl::flat_hash_map<KvBlockId, Wrong> wrong_;  // by a table's first block
  int num_tokens_run_ = 0;
  int num_passes_ = 0;
  int num_poison_reads_ = 0;
};

}  // namespace outrider::testing

#endif  // OUTRIDER_CORE_TESTING_TABLE_LM_H_
