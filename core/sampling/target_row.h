// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_SAMPLING_TARGET_ROW_H_
#define OUTRIDER_CORE_SAMPLING_TARGET_ROW_H_

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/token.h"
#include "core/sampling/distribution.h"
#include "core/sampling/random_source.h"

namespace outrider {

// What the acceptance rule sees of the target at one position, whatever the
// verifier's reply format: the probability of each token on the draft's
// support, the mass off it (the tail), and one token drawn from there. The row
// after the last draft has an empty support: its tail is all of p. So has each
// row of the coupled rule, whose token is the target's own draw from all of p.
class TargetRow {
 public:
  // Made from the whole row. The token is drawn with the TAIL coin of
  // `position` from p off the support, when it is asked for; `random` must
  // outlive the row. Where p has one token alone it needs no coin. `support` is
  // ascending.
  static TargetRow FromDense(Distribution p, absl::Span<const TokenId> support,
                             uint64_t position, RandomSource& random);

  // The row of the coupled rule has no support, and the target's own draw with
  // the noise of `position`, made when it is asked for.
  static TargetRow Coupled(Distribution p, uint64_t position,
                           RandomSource& random);

  // Made from what a verifier sends. `support` is ascending, p as long; the
  // tail token was drawn from p off the support, where it has mass.
  // INVALID_ARGUMENT where these cannot be parts of one distribution.
  static absl::StatusOr<TargetRow> FromParts(std::vector<TokenId> support,
                                             std::vector<double> p,
                                             double tail_mass,
                                             std::optional<TokenId> tail_token);

  // Draws the token now, where there is one, so that the row needs neither the
  // whole of p nor the coins any more.
  void Draw();

  absl::Span<const TokenId> support() const { return support_; }
  // One for each token of the support.
  absl::Span<const double> probabilities() const { return p_; }
  // The target's probability of a token on the draft's support.
  double operator()(TokenId token) const;
  // The sum of p over everything off the support, not 1 minus the rest: that
  // would lose all digits where the support holds nearly everything.
  double tail_mass() const { return tail_mass_; }
  // The one from the tail, there only where tail_mass() > 0; of a coupled row
  // the target's own.
  TokenId drawn_token() const { return draw_(); }

 private:
  TargetRow() = default;

  std::vector<TokenId> support_;
  std::vector<double> p_;  // over support_
  double tail_mass_ = 0;
  std::function<TokenId()> draw_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_SAMPLING_TARGET_ROW_H_
