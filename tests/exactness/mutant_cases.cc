// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/mutant_cases.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>
#include <variant>

#include "core/sampling/cut.h"
#include "core/sampling/process.h"
#include "tests/exactness/law_case.h"

namespace outrider::testing::mutants {
namespace {

Sabotage Altering(std::function<void(Draft&)> alter) {
  return {.alter_draft = std::move(alter)};
}
Sabotage Ruling(DenseRule rule) {
  return WithRule(std::move(rule), kFourWordsSampling);
}
// `alter` gets the residual's weights over S and, last, the tail's mass.
Sabotage Residuals(std::function<void(std::vector<double>&)> alter) {
  return WithWeights([alter](Purpose purpose, std::vector<double>& weights) {
    if (purpose == Purpose::kResidual) alter(weights);
  });
}

double SumButLast(const std::vector<double>& weights) {
  return std::accumulate(weights.begin(), weights.end() - 1, 0.0);
}

const Distribution& LastDraftRow(const DenseView& view) {
  return view.draft.distributions.back();
}

// The drafter's own row at the place of draft i (i = K: after the last).
Distribution DrafterRow(const DenseView& view, int i,
                        const SamplingParams& sampling) {
  TokenSeq context = {view.committed.begin(), view.committed.end()};
  context.insert(context.end(), view.draft.tokens.begin(),
                 view.draft.tokens.begin() + i);
  return *Process(FourWords().Drafter(context), sampling, {});
}
// What M1 reports: drawn with top-k, sent without.
Distribution WithoutTopK(const DenseView& view, int i) {
  return DrafterRow(view, i, {.temperature = kFourWordsSampling.temperature});
}

void DrawArgmax(Purpose purpose, std::vector<double>& weights) {
  if (purpose != Purpose::kDraft) return;
  const auto best = std::max_element(weights.begin(), weights.end());
  for (auto it = weights.begin(); it != weights.end(); ++it) {
    if (it != best) *it = 0;
  }
}

// The verifier ignores the temperature: scaled logits come out at T = 1.
absl::Status UndoTemperature(const VerifyCall&, VerifyReply& reply) {
  LogitRows& rows = std::get<LogitRows>(reply.outcome);
  std::vector<float> values;
  for (int i = 0; i < rows.num_rows(); ++i) {
    for (const float logit : rows.Row(i)) {
      values.push_back(logit *
                       static_cast<float>(kFourWordsSampling.temperature));
    }
  }
  rows = LogitRows::FromVector(std::move(values), rows.vocab_size());
  return absl::OkStatus();
}

void DropUnlikely(Draft& draft) {
  for (int i = 0; i < draft.length(); ++i) {
    if (draft.distributions[i](draft.tokens[i]) >= 0.35) continue;
    draft.tokens.resize(i);
    draft.distributions.erase(draft.distributions.begin() + i,
                              draft.distributions.end());
  }
}

void DropIfFirstIsZero(Draft& draft) {
  if (draft.tokens[0] == 0) draft = {.start = draft.start};
}

const Distribution& NextOf(const DenseView& view, int i) {
  return view.draft.distributions[(i + 1) % view.draft.length()];
}

std::vector<double> TailOfNextRow(const DenseView& view, int i) {
  const Distribution& q = view.draft.distributions[i];
  std::vector<double> weights = Residual(view.p[i], q, view.vocab_size);
  const std::vector<double> next = Off(view.p[i + 1], q, view.vocab_size);
  double tail = 0;
  for (TokenId v = 0; v < view.vocab_size; ++v) {
    if (q(v) == 0) tail += weights[v];
  }
  const double total = std::accumulate(next.begin(), next.end(), 0.0);
  for (TokenId v = 0; v < view.vocab_size; ++v) {
    if (q(v) == 0) weights[v] = tail * next[v] / total;
  }
  return weights;
}

// S6: Z taken as m: the sum over S reaches it too early.
void TakeTailMassAsTotal(std::vector<double>& weights) {
  double left = weights.back();
  if (left == 0) return;
  for (double& weight : weights) {
    weight = std::min(weight, left);
    left -= weight;
  }
}

// T1: the residual sees q cut to its top 2, not renormalised.
std::vector<double> ResidualOfCutRow(const DenseView& view, int i) {
  const Distribution& q = view.draft.distributions[i];
  std::vector<double> weights = Dense(view.p[i], view.vocab_size);
  const Distribution cut = KeepTop(q, 2);
  for (const TokenId v : cut.support()) {
    weights[v] = std::max(0.0, weights[v] - q(v));
  }
  return weights;
}
Distribution CutRow(const DenseView& view, int i) {
  return KeepTop(view.draft.distributions[i], 2);
}

// A rule that judges by another q than the one drawn from. A token that it
// excludes has the probability `lowest` in the acceptance test.
DenseRule JudgingBy(std::function<Distribution(const DenseView&, int)> q,
                    double lowest = 0) {
  return {.draft_probability =
              [q, lowest](const DenseView& view, int i) {
                return std::max(q(view, i)(view.draft.tokens[i]), lowest);
              },
          .residual =
              [q](const DenseView& view, int i) {
                return Residual(view.p[i], q(view, i), view.vocab_size);
              }};
}

using View = TableLm::CutView;
// How far a cut goes back: in a round after a refusal K - a entries.
int NumCut(const View& view) { return view.cached_length - view.keep_length; }

// One that a test of the first token alone would miss.
MutantCase Hidden(MutantCase mutant) {
  mutant.first_token_is_right = true;
  return mutant;
}

}  // namespace

std::vector<MutantCase> MutantsOfDraft() {
  return {
      {"M1", 6.88e-2, 6.96e-2, Mutant::kNone, Ruling(JudgingBy(WithoutTopK))},
      {"M7", 5.87e-1, 5.09e-1, Mutant::kNone, WithWeights(DrawArgmax)},
      {"M10", 2.98e-1, 3.77e-1, Mutant::kNone, Ruling(JudgingBy(NextOf))},
      {"M17", 2.74e-1, 2.64e-1, Mutant::kNone, Altering(DropUnlikely)},
      Hidden({"T1", 1.55e-1, 1.35e-1, Mutant::kNone,
              Ruling({.residual = ResidualOfCutRow})}),
      {"T2", 2.79e-1, 2.28e-1, Mutant::kNone,
       Ruling(JudgingBy(CutRow, 1e-300))},
      {"T4", 1.13e-1, 1.19e-1, Mutant::kNone, Altering(DropIfFirstIsZero)},
      {"K1", 1.87e-1, 1.87e-1, Mutant::kNone, Altering(KeepWhatPromisesMost)},
      {.id = "T3",
       .figure_k3 = 6.93e-4,
       .figure_k2 = 6.85e-4,
       .mutant = Mutant::kT3,
       .round_weights = true},
  };
}

std::vector<MutantCase> MutantsOfRule() {
  const auto residual_of_next = [](const DenseView& view, int i) {
    return Dense(view.p[i + 1], view.vocab_size);
  };
  const auto bonus_from_residual = [](const DenseView& view) {
    return Residual(view.p.back(), LastDraftRow(view), view.vocab_size);
  };
  const auto bonus_from_draft = [](const DenseView& view) {
    return Dense(DrafterRow(view, view.draft.length(), kFourWordsSampling),
                 view.vocab_size);
  };
  const auto always = [](RandomSource&, const CoinKey&, double, double) {
    return true;
  };
  const auto if_sample_is_equal = [](RandomSource& coins, const CoinKey& key,
                                     double p, double) {
    return coins.Accept(key, p, 1.0);
  };
  const auto inverted = [](RandomSource& coins, const CoinKey& key, double p,
                           double q) {
    return p == 0 || coins.Accept(key, q, p);
  };
  const auto clamped = [](const DenseView& view, int i) {
    std::vector<double> weights =
        Residual(view.p[i], view.draft.distributions[i], view.vocab_size);
    for (double& weight : weights) weight = std::max(weight, 1e-38);
    return weights;
  };
  return {
      {"M2", 0, 2.50e-1, Mutant::kM2},
      {"M3", 0, 1.96e-1, Mutant::kM3},
      {"M4", 0, 3.38e-1, Mutant::kNone, Ruling({.residual = residual_of_next})},
      Hidden({"M5", 7.94e-2, 8.09e-2, Mutant::kNone,
              Ruling({.bonus = bonus_from_residual})}),
      Hidden({"M6", 1.07e-1, 1.33e-1, Mutant::kNone,
              Ruling({.bonus = bonus_from_draft})}),
      {"M8", 4.56e-1, 4.37e-1, Mutant::kNone, WithAccept(always)},
      {"M9", 0, 2.86e-1, Mutant::kNone, WithAccept(if_sample_is_equal)},
      {"M15",
       1.19e-1,
       1.19e-1,
       Mutant::kNone,
       {.after_verify = UndoTemperature}},
      {"M16", 0, 7.67e-2, Mutant::kNone,
       WithLostReplies([](const Verdict& v) { return v.num_accepted == 0; },
                       /*k=*/2)},
      {"M18", 4.54e-1, 4.49e-1, Mutant::kNone, WithAccept(inverted)},
      Hidden({"M19", 0, 2e-16, Mutant::kNone, Ruling({.residual = clamped})}),
  };
}

// These err below the prefix check, in the cache's entries themselves: above it
// they would heal into misses.
std::vector<MutantCase> MutantsOfCache() {
  const auto never = [](const View& view) { return view.num_entries; };
  const auto too_long = [](const View& view) {
    return view.num_entries - std::max(0, NumCut(view) - 1);
  };
  // Loses the last accepted draft's entry, where there is one: of K drafts and
  // the pending token that were appended, a + 1 should stay.
  const auto too_short = [](const View& view) {
    const bool any_accepted = NumCut(view) < view.num_appended - 1;
    const bool any_refused = NumCut(view) > 0;
    return std::min(view.num_entries,
                    view.keep_length - (any_accepted && any_refused ? 1 : 0));
  };
  return {
      Hidden({"M11", 0, 2.81e-1, Mutant::kNone, {.verifier_cut = never}}),
      Hidden(
          {"M12", 3.33e-1, 2.68e-1, Mutant::kNone, {.verifier_cut = too_long}}),
      Hidden({"M13",
              3.76e-1,
              2.76e-1,
              Mutant::kNone,
              {.verifier_cut = too_short}}),
  };
}

std::vector<MutantCase> MutantsOfTail() {
  // tau with probability m, instead of m / Z.
  const auto by_mass = [](std::vector<double>& weights) {
    const double tail = weights.back();
    const double rest = SumButLast(weights);
    if (rest == 0) return;
    for (double& weight : weights) weight *= (1 - tail) / rest;
    weights.back() = tail;
  };
  const auto as_last_resort = [](std::vector<double>& weights) {
    if (SumButLast(weights) > 0) weights.back() = 0;
  };
  const auto bonus_off_last_draft_row = [](const DenseView& view) {
    return Off(view.p[view.draft.length() - 1], LastDraftRow(view),
               view.vocab_size);
  };
  std::vector<MutantCase> cases = {
      {"S1", 3.24e-1, 3.44e-1, Mutant::kS1},
      {"S2", 2.63e-1, 2.35e-1, Mutant::kNone, Residuals(by_mass)},
      {"S3", 4.30e-1, 3.88e-1, Mutant::kNone, Residuals(as_last_resort)},
      {"S4", 3.13e-1, 3.31e-1, Mutant::kNone,
       Ruling({.residual = TailOfNextRow})},
      Hidden({"S5", 1.64e-1, 1.35e-1, Mutant::kNone,
              Ruling({.bonus = bonus_off_last_draft_row})}),
      {"S6", 1.01e-1, 6.39e-2, Mutant::kNone, Residuals(TakeTailMassAsTotal)},
      Hidden({"S7", 1.06e-2, 1.06e-2, Mutant::kS7}),
  };
  cases.back().reuse = Reuse::kShareUniform;
  for (MutantCase& mutant : cases) mutant.support_size = 2;
  return cases;
}

// Block verification's own: the residual of the last row alone, each prefix
// judged as if it were the whole block, and as if all before it were certain.
std::vector<MutantCase> MutantsOfBlock() {
  std::vector<MutantCase> cases = {
      Hidden({"B1", 0, 2.73e-3, Mutant::kB1}),
      Hidden({"B2", 0, 9.17e-2, Mutant::kB2}),
      {"B3", 0, 4.86e-2, Mutant::kB3},
  };
  for (MutantCase& mutant : cases) mutant.rule = RuleKind::kBlock;
  return cases;
}

// The published figures for M14 (1.86e-1 and 4.97e-1) are those of an engine
// that never stops; ours looks at the last token of a block, and so runs past
// the others only.
std::vector<MutantCase> MutantsOfEnd() {
  std::vector<MutantCase> cases = {
      Hidden({"M14 EOS 3", 0, 7.26e-2, Mutant::kM14}),
      Hidden({"M14 EOS 0", 0, 2.17e-1, Mutant::kM14}),
  };
  cases[0].eos_ids = {3};
  cases[1].eos_ids = {0};
  return cases;
}

}  // namespace outrider::testing::mutants
