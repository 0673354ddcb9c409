// SPDX-License-Identifier: Apache-2.0
#include "tests/support/small_cluster.h"

#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "tests/support/hash_model.h"

namespace outrider::testing {

InProcessCluster::Options SmallCluster() {
  return {.target = {.table =
                         [](absl::Span<const TokenId> context) {
                           if (context[0] == kPoison) {
                             return std::vector<float>(kVocab, std::nanf(""));
                           }
                           return HashTarget(context, kVocab);
                         },
                     .vocab_size = kVocab,
                     .context_length = 512},
          .draft = {.table =
                        [](absl::Span<const TokenId> context) {
                          return HashDraft(context, kVocab);
                        },
                    .vocab_size = kVocab,
                    .context_length = 512}};
}

Result Drain(client::GenerationStream& stream) {
  Result result;
  while (true) {
    const auto update = stream.Next();
    if (!update.ok()) {
      result.status = update.status();
      return result;
    }
    if (!update->has_value()) return result;
    result.last_index = (*update)->first_index;
    if ((*update)->start) result.start = (*update)->start;
    for (const GeneratedToken& token : (*update)->tokens) {
      result.tokens.push_back(token.id);
      result.scored.push_back(token);
    }
    if (const auto& round = (*update)->round) {
      result.num_accepted += round->num_accepted;
      result.num_more += round->num_more;
    }
    if ((*update)->finish) result.finish = (*update)->finish;
  }
}

Result Generate(InProcessCluster& cluster, client::GenerationRequest request) {
  const auto stream =
      cluster.client().Generate(std::move(request), std::chrono::minutes(1));
  return Drain(*stream);
}

Result GenerateWithDrafts(InProcessCluster& cluster,
                          const client::GenerationRequest& request,
                          int more_than) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::minutes(1);
  Result result;
  do {
    result = Generate(cluster, request);
  } while (result.status.ok() && result.num_accepted <= more_than &&
           std::chrono::steady_clock::now() < deadline);
  return result;
}

void HaveFirstStreams() {
  static std::atomic<bool> had_any = false;
  if (had_any.exchange(true)) return;
  InProcessCluster cluster(SmallCluster());
  if (cluster.WaitUntilReady()) {
    GenerateWithDrafts(cluster, Greedy({5}, 60, /*k=*/4));
  }
}

Seat<VerifierNode> SitAt(InProcessCluster& cluster, const LocalNode& verifier) {
  const auto is_it = [address = verifier.address()](const VerifierNode& node,
                                                    const NodeDescription&) {
    return node.link.address == address;
  };
  return cluster.pool().ChooseVerifier({}, is_it).seat;
}

TableLm::Table ActInRound(TableLm::Table table, int round,
                          std::function<void()>& act) {
  auto num_calls = std::make_shared<std::atomic<int>>(0);
  return [table = std::move(table), round, &act,
          num_calls](absl::Span<const TokenId> context) {
    if (++*num_calls == round && act) act();
    return table(context);
  };
}

TableLm::Table DrafterFirst::Around(TableLm::Table table) {
  return [this, table = std::move(table)](absl::Span<const TokenId> context) {
    if (context.size() >= 10) Await();
    return table(context);
  };
}

void DrafterFirst::Await() {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!is_over_) {
    if (cluster_.load()->drafter().counters().num_finished() > 0) {
      is_over_ = true;
    } else if (std::chrono::steady_clock::now() > deadline) {
      is_over_ = true;
      ADD_FAILURE() << "the drafter was not filled within 10 s";
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

client::GenerationRequest Greedy(TokenSeq prompt, int num_tokens, int k) {
  client::GenerationRequest request;
  request.prompt = std::move(prompt);
  request.temperature = 0.0;
  request.max_tokens = num_tokens;
  request.num_speculative_tokens = k;
  return request;
}

}  // namespace outrider::testing
