// SPDX-License-Identifier: Apache-2.0
#include "tests/exactness/sabotage.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/check.h"
#include "core/sampling/process.h"
#include "core/sampling/rejection.h"
#include "core/testing/run_task.h"
#include "tests/exactness/coins_of_epoch.h"

namespace outrider::testing {

bool WrongCoins::Accept(const CoinKey& key, double p, double q) {
  return options_.accept ? options_.accept(source_, key, p, q)
                         : source_.Accept(key, p, q);
}

size_t WrongCoins::Categorical(const CoinKey& key,
                               absl::Span<const double> weights) {
  std::vector<double> altered(weights.begin(), weights.end());
  if (options_.weights) options_.weights(key.purpose, altered);
  return source_.Categorical(key, altered);
}

Sabotage WithAccept(WrongCoins::AcceptFunction accept) {
  return {.coins = [accept](RandomSource& source) {
    return std::make_unique<WrongCoins>(source,
                                        WrongCoins::Options{.accept = accept});
  }};
}

Sabotage WithWeights(WrongCoins::WeightsFunction weights) {
  return {.coins = [weights](RandomSource& source) {
    return std::make_unique<WrongCoins>(
        source, WrongCoins::Options{.weights = weights});
  }};
}

Sabotage WithRule(DenseRule rule, const SamplingParams& sampling) {
  return {.judge = [rule, sampling](const JudgeView& round) -> Verdict {
    const Draft& draft = round.draft;
    std::vector<Distribution> p;
    for (int i = 0; i < round.rows.num_rows(); ++i) {
      const TokenHistory history = {
          .committed = round.committed,
          .drafts = absl::MakeConstSpan(draft.tokens).first(i),
          .prompt_length = 1};
      p.push_back(rule.process
                      ? rule.process(round.rows.Row(i), history)
                      : *Process(round.rows.Row(i), sampling, history));
    }
    RandomSource& random = round.random;
    const DenseView view = {round.rows.vocab_size(), round.committed, draft, p};
    const int k = draft.length();
    for (int i = 0; i < k; ++i) {
      const uint64_t position = draft.start + i;
      const TokenId x = draft.tokens[i];
      const double q = rule.draft_probability ? rule.draft_probability(view, i)
                                              : draft.distributions[i](x);
      const bool accepted =
          q == 0 || random.Accept({Purpose::kAccept, position}, p[i](x), q);
      if (accepted) continue;
      const std::vector<double> residual =
          rule.residual
              ? rule.residual(view, i)
              : Residual(p[i], draft.distributions[i], view.vocab_size);
      return {i, static_cast<TokenId>(random.Categorical(
                     {Purpose::kResidual, position}, residual))};
    }
    const std::vector<double> bonus =
        rule.bonus ? rule.bonus(view) : Dense(p[k], view.vocab_size);
    return {k, static_cast<TokenId>(random.Categorical(
                   {Purpose::kTail, draft.start + k}, bonus))};
  }};
}

std::vector<double> Dense(const Distribution& p, int vocab_size) {
  std::vector<double> dense;
  for (TokenId v = 0; v < vocab_size; ++v) dense.push_back(p(v));
  return dense;
}

std::vector<double> Residual(const Distribution& p, const Distribution& q,
                             int vocab_size) {
  std::vector<double> residual;
  for (TokenId v = 0; v < vocab_size; ++v) {
    residual.push_back(std::max(0.0, p(v) - q(v)));
  }
  const double sum = std::accumulate(residual.begin(), residual.end(), 0.0);
  return sum > 0 ? residual : Dense(p, vocab_size);
}

std::vector<double> Off(const Distribution& p, const Distribution& q,
                        int vocab_size) {
  std::vector<double> off = Dense(p, vocab_size);
  for (const TokenId v : q.support()) off[v] = 0;
  const double sum = std::accumulate(off.begin(), off.end(), 0.0);
  return sum > 0 ? off : Dense(p, vocab_size);
}

Sabotage WithLostReplies(std::function<bool(const Verdict&)> may_be_lost,
                         int k) {
  auto epoch = std::make_shared<uint64_t>(0);
  const auto coins = [epoch](RandomSource& source) {
    *epoch = 0;
    return std::make_unique<CoinsOfEpoch>(source, *epoch);
  };
  const auto round = [epoch, may_be_lost,
                      k](ToyCluster& cluster) -> absl::StatusOr<Verdict> {
    Session& session = cluster.session();
    NodeDraftClient drafter(
        cluster.draft_stub(),
        {.context_length = 1 << 20, .drafting = {.support_size = 4}});
    NodeVerifyClient verifier(cluster.verify_stub());
    for (const bool is_last : {false, true}) {
      auto proposed = RunTask(drafter.Propose(session, k));
      if (!proposed.ok()) return proposed.status();
      Draft& draft = proposed->draft;
      const auto scored = RunTask(verifier.Score(session, draft));
      if (!scored.ok()) return scored.status();
      const Verdict verdict =
          AcceptPrefix(draft, scored->score.rows, session.coins());
      const CoinKey loss = {Purpose::kUnspecified, draft.start};
      if (is_last || !may_be_lost(verdict) ||
          !session.coins().Accept(loss, 0.5, 1.0)) {
        session.Commit(draft, verdict);
        return verdict;
      }
      ++*epoch;
    }
    return absl::InternalError("not reached");
  };
  return {.coins = coins, .round = round};
}

void KeepWhatPromisesMost(Draft& draft) {
  constexpr double kVerify = 1;  // a draft takes half as long
  constexpr double kDraft = 0.5;
  double all_stand = 1;
  double tokens = 1;
  double best = tokens / kVerify;
  int num_kept = 0;
  for (int i = 0; i < draft.length(); ++i) {
    all_stand *= draft.distributions[i](draft.tokens[i]);
    tokens += all_stand;
    const double rate = tokens / (kVerify + kDraft * (i + 1));
    if (rate <= best) continue;
    best = rate;
    num_kept = i + 1;
  }
  draft.tokens.resize(num_kept);
  draft.distributions.erase(draft.distributions.begin() + num_kept,
                            draft.distributions.end());
}

}  // namespace outrider::testing
