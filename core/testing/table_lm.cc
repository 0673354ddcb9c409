// SPDX-License-Identifier: Apache-2.0
#include "core/testing/table_lm.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "core/base/check.h"
#include "core/model/check_extension.h"

namespace outrider::testing {

TableLm::TableLm(Options options)
    : options_(std::move(options)), available_kv_bytes_(options_.kv_bytes) {
  info_ = {.name = "table",
           .weights_hash = "0",
           .dtype = "float32",
           .device = "cpu",
           .numerics = "table",
           .vocab_size = options_.vocab_size,
           .context_length = options_.context_length,
           .eos_ids = options_.eos_ids,
           .kv_block_bytes = kBlockBytes};
}

absl::Status TableLm::AllocateKvBlocks(int num_blocks) {
  if (num_blocks * kBlockBytes > available_kv_bytes_) {
    return absl::ResourceExhaustedError("no memory for so many KV blocks");
  }
  available_kv_bytes_ -= num_blocks * kBlockBytes;
  blocks_.Allocate(num_blocks);
  return absl::OkStatus();
}

std::unique_ptr<PendingPass> TableLm::Launch(
    absl::Span<const Extension> batch) {
  ++num_passes_;
  std::vector<absl::Status> checks;
  for (const Extension& extension : batch) {
    checks.push_back(CheckExtension(extension, info_));
    if (!checks.back().ok() || !extension.copied_block.has_value()) continue;
    blocks_.Copy(*extension.copied_block, CopyTarget(extension));
  }
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!checks[i].ok()) continue;
    const Extension& extension = batch[i];
    num_tokens_run_ += static_cast<int>(extension.tokens.size());
    int position = extension.cached_length;
    for (const TokenId token : extension.tokens) {
      blocks_.Set(extension.blocks, position++, token);
    }
  }
  // A layer of a pass writes all keys before it reads any: so whoever writes to
  // a block that another one reads spoils that one's context.
  PassResults results;
  results.reserve(batch.size());
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!checks[i].ok()) {
      results.push_back(checks[i]);
      continue;
    }
    LogitRows rows = Rows(ContextOf(batch[i]), batch[i].num_rows);
    if (!options_.answer || batch[i].questions.empty()) {
      results.push_back(std::move(rows));
      continue;
    }
    auto asked = Answered(rows, batch[i].questions);
    auto drawn = GoOn(batch[i], asked);
    results.push_back(
        LogitRows(std::move(asked), options_.vocab_size, std::move(drawn)));
  }
  return std::make_unique<PassThatRan>(std::move(results));
}

TokenSeq TableLm::ContextOf(const Extension& extension) {
  if (options_.cut) return WronglyCut(extension);
  TokenSeq context =
      Context(extension.blocks, extension.cached_length +
                                    static_cast<int>(extension.tokens.size()));
  num_poison_reads_ +=
      static_cast<int>(std::count(context.begin(), context.end(), kPoison));
  return context;
}

TokenSeq TableLm::WronglyCut(const Extension& extension) {
  Wrong& wrong = wrong_[extension.blocks[0]];
  if (extension.cached_length == 0) wrong = {};  // another session, or anew
  TokenSeq& tokens = wrong.tokens;
  tokens.resize(options_.cut({.num_entries = static_cast<int>(tokens.size()),
                              .cached_length = wrong.cached_length,
                              .num_appended = wrong.num_appended,
                              .keep_length = extension.cached_length}));
  tokens.insert(tokens.end(), extension.tokens.begin(), extension.tokens.end());
  wrong.num_appended = static_cast<int>(extension.tokens.size());
  wrong.cached_length = extension.cached_length + wrong.num_appended;
  return tokens;
}

LogitRows TableLm::Rows(const TokenSeq& context, int num_rows) const {
  std::vector<float> values;
  for (int i = num_rows; i > 0; --i) {
    const std::vector<float> row = options_.table(
        absl::MakeConstSpan(context).first(context.size() - (i - 1)));
    OUTRIDER_CHECK(static_cast<int>(row.size()) == options_.vocab_size);
    values.insert(values.end(), row.begin(), row.end());
  }
  return LogitRows::FromVector(std::move(values), options_.vocab_size);
}

std::vector<LogitRows::AskedRow> TableLm::Answered(
    const LogitRows& rows, absl::Span<const RowQuestion> questions) const {
  OUTRIDER_CHECK(static_cast<int>(questions.size()) == rows.num_rows());
  const auto owner = std::make_shared<const LogitRows>(rows);
  std::vector<LogitRows::AskedRow> asked;
  for (int i = 0; i < rows.num_rows(); ++i) {
    const absl::Span<const float> row = owner->Row(i);
    std::optional<RowAnswer> answer = options_.answer(questions[i], row);
    if (answer.has_value()) {
      asked.push_back({.answer = std::move(answer)});
    } else {
      asked.push_back({.logits = {owner, row.data()}});
    }
  }
  return asked;
}

std::vector<TokenId> TableLm::GoOn(const Extension& extension,
                                   std::vector<LogitRows::AskedRow>& rows) {
  std::vector<TokenId> drawn;
  const RowQuestion& question = extension.questions.back();
  if (!options_.guess) return drawn;
  int length =
      extension.cached_length + static_cast<int>(extension.tokens.size());
  while (static_cast<int>(drawn.size()) < extension.max_drawn &&
         rows.back().answer.has_value()) {
    const auto& answer = std::get<TopAnswer>(*rows.back().answer);
    const std::optional<TokenId> token =
        options_.guess(question, answer, static_cast<int>(drawn.size()));
    if (!token.has_value()) break;
    blocks_.Set(extension.blocks, length++, *token);
    ++num_tokens_run_;
    auto next =
        Answered(Rows(Context(extension.blocks, length), 1), {&question, 1});
    if (!next[0].answer.has_value()) break;
    drawn.push_back(*token);
    rows.push_back(std::move(next[0]));
  }
  return drawn;
}

}  // namespace outrider::testing
