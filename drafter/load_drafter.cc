// SPDX-License-Identifier: Apache-2.0
#include "drafter/load_drafter.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/flag_checks.h"
#include "core/base/status_macros.h"
#include "core/drafting/ngram_strategy.h"
#include "core/model/no_model.h"
#include "core/node/describe_model.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "drafter/model_strategy.h"

namespace outrider {
namespace {

constexpr char kNgram[] = "ngram";

absl::StatusOr<LoadedModel> LoadNgrams(const NodeFlags& flags) {
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                            LoadTokenizer(flags.model));
  // No model, hence no end of the context.
  auto model = std::make_unique<NoModel>(
      ModelInfo{.name = kNgram,
                .dtype = "none",
                .device = "cpu",
                .vocab_size = tokenizer->vocab_size(),
                .context_length = std::numeric_limits<int>::max() / 2});
  NodeDescription description = DescribeModel(*tokenizer, model->info());
  return LoadedModel{std::move(model), std::move(description)};
}

}  // namespace

absl::Status CheckDrafterFlags(const std::string& strategy,
                               const NodeFlags& flags) {
  if (strategy != kNgram || !flags.simulation.enabled) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--simulate drafts with a simulated model, not --strategy ngram");
}

absl::StatusOr<LoadedModel> LoadDrafter(const std::string& strategy,
                                        const NodeFlags& flags,
                                        const WeightsLoader& load_weights) {
  if (strategy != "model" && strategy != kNgram) {
    return absl::InvalidArgumentError(
        absl::StrCat("--strategy must be model or ngram, not ", strategy));
  }
  absl::StatusOr<LoadedModel> loaded =
      strategy == kNgram ? LoadNgrams(flags)
                         : LoadModel(flags, "simulated-draft", load_weights);
  if (!loaded.ok()) return loaded;
  loaded->description.draft_strategy = strategy;
  loaded->description.max_outcomes = strategy == kNgram ? 0 : kMaxOutcomes;
  loaded->description.rules = {RuleKind::kRejection, RuleKind::kCoupled};
  return loaded;
}

void AddDrafterFlags(CLI::App& app, NodeFlags& flags, std::string& strategy) {
  AddSimulatedGuesses(app, flags.simulation);
  app.add_option("--strategy", strategy,
                 "model: a small model; ngram: prompt lookup, which needs only "
                 "the tokenizer of --model")
      ->group("Model")
      ->check(OneOf({"model", kNgram}))
      ->capture_default_str();
}

std::unique_ptr<DraftStrategy> MakeStrategy(
    const NodeDescription& description) {
  if (description.draft_strategy == kNgram) {
    return std::make_unique<NgramStrategy>(NgramStrategy::Options());
  }
  return std::make_unique<ModelStrategy>(description.vocab_size);
}

}  // namespace outrider
