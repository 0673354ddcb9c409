// SPDX-License-Identifier: Apache-2.0
#include "client/processing_flags.h"

#include <CLI/CLI.hpp>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/flag_checks.h"
#include "core/sampling/sampling_params.h"
#include "core/sampling/token_logprobs.h"

namespace outrider::client {
namespace {

void AddPenaltyFlags(CLI::App& command, GenerationRequest& request) {
  command
      .add_option("--min-p", request.min_p,
                  "drop tokens less probable than this times the\n"
                  "most probable one; 0 is off")
      ->type_name("P")
      ->check(NumberIn(kMinPs));
  command
      .add_option("--repetition-penalty", request.repetition_penalty,
                  "0.01 to 100; above 1: tokens of prompt and text\n"
                  "become less likely; 1 is off")
      ->type_name("X")
      ->check(NumberIn(kRepetitionPenalties));
  command
      .add_option("--presence-penalty", request.presence_penalty,
                  "-2 to 2, off the logits of generated tokens; 0 is off")
      ->type_name("X")
      ->check(NumberIn(kAdditivePenalties));
  command
      .add_option("--frequency-penalty", request.frequency_penalty,
                  "the same, for each time that they were "
                  "generated")
      ->type_name("X")
      ->check(NumberIn(kAdditivePenalties));
}

}  // namespace

void AddProcessingFlags(CLI::App& command, GenerateFlags& flags) {
  AddPenaltyFlags(command, flags.request);
  command
      .add_option("--logit-bias", flags.logit_bias,
                  "add BIAS, -100 to 100, to a token's logit; may be\n"
                  "repeated")
      ->type_name("ID=BIAS")
      ->allow_extra_args(false);
  command
      .add_option("--logprobs", flags.request.logprobs,
                  "with --json: each token's log-probability, and\n"
                  "those of the N most probable at its place; 0 to 20")
      ->type_name("N")
      ->check(WholeNumberIn(0, kMaxTopLogprobs));
  const std::map<std::string, LogprobsMode> modes = {
      {"raw", LogprobsMode::kRaw}, {"processed", LogprobsMode::kProcessed}};
  AddNamedOption(command, "--logprobs-mode", flags.request.logprobs_mode, modes,
                 "raw: of the model's own logits, the default; processed:\n"
                 "of what tokens are drawn from")
      ->type_name("MODE");
}

absl::StatusOr<std::vector<LogitBias>> ParseLogitBias(
    const std::vector<std::string>& entries) {
  std::vector<LogitBias> biases;
  for (const std::string& entry : entries) {
    const std::pair<std::string, std::string> parts =
        absl::StrSplit(entry, absl::MaxSplits('=', 1));
    LogitBias bias;
    const bool is_valid = absl::SimpleAtoi(parts.first, &bias.id) &&
                          bias.id >= 0 &&
                          absl::SimpleAtod(parts.second, &bias.bias) &&
                          kLogitBiases.Has(bias.bias);
    if (!is_valid) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--logit-bias needs a token id and a number ", InWords(kLogitBiases),
          ", such as \"17=-2.5\", not \"", entry, "\""));
    }
    biases.push_back(bias);
  }
  return biases;
}

absl::Status CheckLogprobsFlags(const GenerateFlags& flags) {
  if (flags.request.logprobs_mode && !flags.request.logprobs) {
    return absl::InvalidArgumentError(
        "--logprobs-mode needs --logprobs, the number of alternatives");
  }
  if (flags.request.logprobs && !flags.wants_json()) {
    return absl::InvalidArgumentError(
        "--logprobs needs --json: only there they are shown");
  }
  return absl::OkStatus();
}

}  // namespace outrider::client
