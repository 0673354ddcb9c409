// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_TESTS_EXACTNESS_TOY_MODEL_H_
#define OUTRIDER_TESTS_EXACTNESS_TOY_MODEL_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/types/span.h"
#include "core/base/token.h"

namespace outrider::testing {

enum class DrafterKind {
  kCorrelated,  // 0.7 * target + 0.6 * its own
  kReversed,    // - target: likes what the target dislikes
  kUniform,
  kOneHot,  // all but one token masked
  kSame,    // the target itself
};

// Two language models of a few words whose logits are hashed from the context;
// the hash skips the prompt, which is one token. Every figure of the mutants
// depends on these numbers (libstdc++'s normal_distribution).
class ToyModel {
 public:
  // `target_is_rounded`: its logits are to bfloat16.
  ToyModel(int vocab_size, DrafterKind drafter, bool target_is_rounded = false)
      : vocab_size_(vocab_size),
        drafter_(drafter),
        target_is_rounded_(target_is_rounded) {}

  int vocab_size() const { return vocab_size_; }
  // [vocab_size] logits after `context`, which begins with the prompt.
  std::vector<float> Target(absl::Span<const TokenId> context) const;
  std::vector<float> Drafter(absl::Span<const TokenId> context) const;

 private:
  std::vector<double> Logits(const TokenSeq& context, uint32_t who) const;

  const int vocab_size_;
  const DrafterKind drafter_;
  const bool target_is_rounded_;
  // Memory of Logits, by (context, who) and V = 3-5: some thousand rows.
  mutable std::map<TokenSeq, std::vector<double>> rows_[2];
};

}  // namespace outrider::testing

#endif  // OUTRIDER_TESTS_EXACTNESS_TOY_MODEL_H_
