// SPDX-License-Identifier: Apache-2.0
// The second turn of a chat on the demo pair, in the real programs: how soon
// its first token comes with and without what the first turn has cached. Both
// kinds of chats take turns; medians, and their ratio.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bench/load/trio.h"
#include "client/generation_client.h"
#include "core/base/cancellation.h"
#include "core/base/status_macros.h"
#include "core/rpc/channel.h"

namespace outrider::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNumChats = 12;     // of each kind
constexpr int kHistory = 600;     // tokens of the first turn's prompt
constexpr int kAnswer = 32;       // tokens
constexpr int kNextMessage = 20;  // tokens

struct Turn {
  double first_token_ms = 0;
  int num_cached = 0;
  TokenSeq tokens = {};
};

absl::StatusOr<Turn> Generate(client::GenerationClient& client,
                              const TokenSeq& prompt, const std::string& salt) {
  Turn turn;
  const Clock::time_point start = Clock::now();
  const auto stream = client.Generate({.prompt = prompt,
                                       .temperature = 0,
                                       .max_tokens = kAnswer,
                                       .ignore_eos = true,
                                       .cache_salt = salt},
                                      std::chrono::seconds(60));
  while (true) {
    OUTRIDER_ASSIGN_OR_RETURN(const auto update, stream->Next());
    if (!update.has_value()) return turn;
    if (turn.tokens.empty() && !update->tokens.empty()) {
      turn.first_token_ms =
          std::chrono::duration<double, std::milli>(Clock::now() - start)
              .count();
    }
    for (const auto& token : update->tokens) turn.tokens.push_back(token.id);
    if (update->start) {
      turn.num_cached = update->start->num_cached_prompt_tokens.value_or(0);
    }
  }
}

// The second turn of a chat that nobody had before.
absl::StatusOr<Turn> SecondTurn(client::GenerationClient& client, int chat,
                                const std::string& salt) {
  TokenSeq text(kHistory);
  for (int i = 0; i < kHistory; ++i) {
    text[i] = 20 + (i * 37 + chat * 101 + (salt.empty() ? 0 : 53)) % 4000;
  }
  OUTRIDER_ASSIGN_OR_RETURN(const Turn first, Generate(client, text, salt));
  text.insert(text.end(), first.tokens.begin(), first.tokens.end());
  for (int i = 0; i < kNextMessage; ++i) text.push_back(100 + i);
  return Generate(client, text, salt);
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2,
                   values.end());
  return values[values.size() / 2];
}

absl::Status Run(const std::string& programs, const std::string& models) {
  Cancellation never;
  OUTRIDER_ASSIGN_OR_RETURN(
      const auto trio, Trio::Start({.programs = programs,
                                    .target_model = models + "/demo-target",
                                    .draft_model = models + "/demo-draft"},
                                   {}, never));
  OUTRIDER_ASSIGN_OR_RETURN(const std::string coordinator, trio->Connect({}));
  client::GenerationClient client(coordinator);
  std::vector<double> with;
  std::vector<double> without;
  int num_cached = 0;
  for (int chat = 0; chat < kNumChats; ++chat) {
    OUTRIDER_ASSIGN_OR_RETURN(const Turn alone, SecondTurn(client, chat, ""));
    OUTRIDER_ASSIGN_OR_RETURN(const Turn shared,
                              SecondTurn(client, chat, "benchmark"));
    without.push_back(alone.first_token_ms);
    with.push_back(shared.first_token_ms);
    num_cached = shared.num_cached;
  }
  std::printf(
      "second turn, %d tokens, of which %d cached: first token after %.1f ms, "
      "without the cache %.1f ms, ratio %.2f (medians of %d)\n",
      kHistory + kAnswer + kNextMessage, num_cached, Median(with),
      Median(without), Median(with) / Median(without), kNumChats);
  return absl::OkStatus();
}

}  // namespace
}  // namespace outrider::bench

// Run it in the repository's root, or name the folder of the demo models.
int main(int argc, char** argv) {
  outrider::SetUpGrpc();
  const auto programs =
      std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const absl::Status status =
      outrider::bench::Run(programs, argc > 1 ? argv[1] : "models");
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
