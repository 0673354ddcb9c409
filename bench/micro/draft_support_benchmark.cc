// SPDX-License-Identifier: Apache-2.0
// What cutting draft rows, to their top N or to a mass (and 1024 tokens), costs
// in acceptance, how many tokens it leaves, and the payload of a row in a round
// with the default replies, protobuf's frame not counted. Acceptance is the
// mean of sum over v of min(p(v), q_N(v)), the chance that a draft is accepted,
// over every position of the held-out prompts, against whole rows (N = V), with
// the weights in bfloat16. Nothing is sampled, so the figures repeat exactly.
// Run by hand: draft_support_benchmark TARGET DRAFT PROMPTS.jsonl
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/status_macros.h"
#include "core/model/solo_session.h"
#include "core/sampling/cut.h"
#include "core/sampling/process.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/torch_model/torch_causal_lm.h"
#include "core/wire/row_code.h"

namespace outrider {
namespace {

struct Cut {
  int size = 1024;
  double mass = 1;
};
constexpr Cut kCuts[] = {{8},         {16},         {32},         {64},
                         {128},       {256},        {512},        {1024},
                         {1024, 0.9}, {1024, 0.95}, {1024, 0.98}, {1024, 0.99}};

// Sums over positions.
struct Sums {
  double overlap = 0;
  double num_tokens = 0;
  double num_bytes = 0;
};

// Tokens of a prompt that are looked at.
constexpr int kMaxTokens = 256;

absl::StatusOr<LogitRows> AllRows(SoloSession& session,
                                  const TokenSeq& tokens) {
  return session.Extend(0, tokens, static_cast<int>(tokens.size()));
}

double Overlap(const Distribution& p, const Distribution& q) {
  double sum = 0;
  for (const TokenId v : q.support()) sum += std::min(p(v), q(v));
  return sum;
}

// It comes from the drafter and goes to the verifier.
double RowBytes(const Distribution& q) {
  return 2 * static_cast<double>(PackIds(q.support()).size() +
                                 PackBFloat16(q.weights()).size());
}

absl::Status Run(const std::string& target_directory,
                 const std::string& draft_directory,
                 const std::string& prompts) {
  OUTRIDER_ASSIGN_OR_RETURN(const auto tokenizer,
                            LoadTokenizer(target_directory));
  OUTRIDER_ASSIGN_OR_RETURN(
      const auto target,
      LoadTorchCausalLm({.model_directory = target_directory}));
  OUTRIDER_ASSIGN_OR_RETURN(
      const auto drafter,
      LoadTorchCausalLm({.model_directory = draft_directory}));
  OUTRIDER_ASSIGN_OR_RETURN(SoloSession target_session,
                            SoloSession::Open(*target, kMaxTokens));
  OUTRIDER_ASSIGN_OR_RETURN(SoloSession draft_session,
                            SoloSession::Open(*drafter, kMaxTokens));
  const int vocab_size = tokenizer->vocab_size();

  for (const double temperature : {0.7, 1.0, 1.3}) {
    const SamplingParams params = {.temperature = temperature};
    double whole = 0;
    Sums sums[std::size(kCuts)];
    int num_positions = 0;
    std::ifstream lines(prompts);
    if (!lines) return absl::NotFoundError("cannot read " + prompts);
    for (std::string line; std::getline(lines, line);) {
      TokenSeq tokens = tokenizer->Encode(
          nlohmann::json::parse(line).at("prompt").get<std::string>());
      tokens.resize(std::min<size_t>(tokens.size(), kMaxTokens));
      OUTRIDER_ASSIGN_OR_RETURN(const LogitRows p_rows,
                                AllRows(target_session, tokens));
      OUTRIDER_ASSIGN_OR_RETURN(const LogitRows q_rows,
                                AllRows(draft_session, tokens));
      for (int row = 0; row < p_rows.num_rows(); ++row) {
        OUTRIDER_ASSIGN_OR_RETURN(
            const Distribution p,
            Process(p_rows.Row(row).first(vocab_size), params, {}));
        OUTRIDER_ASSIGN_OR_RETURN(
            const Distribution q,
            Process(q_rows.Row(row).first(vocab_size), params, {}));
        whole += Overlap(p, q);
        for (size_t i = 0; i < std::size(kCuts); ++i) {
          const Distribution cut =
              KeepTop(q, kCuts[i].size, kCuts[i].mass).RoundedToBFloat16();
          sums[i].overlap += Overlap(p, cut);
          sums[i].num_tokens += static_cast<double>(cut.support().size());
          sums[i].num_bytes += RowBytes(cut);
        }
        ++num_positions;
      }
    }
    std::printf("T = %.1f, %d positions: acceptance %.4f with whole rows\n",
                temperature, num_positions, whole / num_positions);
    for (size_t i = 0; i < std::size(kCuts); ++i) {
      std::printf(
          "  N = %4d, mass %.2f: %5.2f points less, %6.1f tokens, %6.0f "
          "bytes\n",
          kCuts[i].size, kCuts[i].mass,
          100 * (whole - sums[i].overlap) / num_positions,
          sums[i].num_tokens / num_positions,
          sums[i].num_bytes / num_positions);
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr,
                 "usage: draft_support_benchmark TARGET DRAFT PROMPTS.jsonl\n");
    return 2;
  }
  const absl::Status status = outrider::Run(argv[1], argv[2], argv[3]);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
