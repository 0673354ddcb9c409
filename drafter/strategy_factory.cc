// SPDX-License-Identifier: Apache-2.0
#include "drafter/strategy_factory.h"

#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/drafting/ngram_strategy.h"
#include "core/node/describe_model.h"
#include "core/tokenizer/tokenizer_loader.h"
#include "core/torch_model/torch_causal_lm.h"
#include "drafter/model_strategy.h"

namespace outrider {
namespace {

absl::StatusOr<StrategyAndDescription> MakeSimulated(const std::string& name,
                                                     const NodeFlags& flags) {
  if (name != "model") {
    return absl::InvalidArgumentError(absl::StrCat(
        "--simulate drafts with a simulated model, not --strategy ", name));
  }
  std::unique_ptr<CausalLm> model =
      MakeSimulatedModel(flags.simulation, "simulated-draft");
  NodeDescription description = DescribeSimulated(model->info());
  description.draft_strategy = name;
  const int vocab_size = description.vocab_size;
  return StrategyAndDescription{
      std::make_unique<ModelStrategy>(std::move(model), vocab_size),
      std::move(description)};
}

}  // namespace

absl::StatusOr<StrategyAndDescription> MakeStrategy(const std::string& name,
                                                    const NodeFlags& flags) {
  if (flags.simulation.enabled) return MakeSimulated(name, flags);
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> loaded,
                            LoadTokenizer(flags.model));
  const Tokenizer& tokenizer = *loaded;
  if (name == "ngram") {
    // No model, hence no end of the context.
    NodeDescription description = DescribeModel(
        tokenizer, {.name = "ngram",
                    .dtype = "none",
                    .device = "cpu",
                    .context_length = std::numeric_limits<int>::max() / 2});
    description.draft_strategy = name;
    return StrategyAndDescription{
        std::make_unique<NgramStrategy>(NgramStrategy::Options()),
        std::move(description)};
  }
  if (name != "model") {
    return absl::InvalidArgumentError(
        absl::StrCat("--strategy must be model or ngram, not ", name));
  }
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<CausalLm> model,
                            LoadTorchCausalLm({.model_directory = flags.model,
                                               .device = flags.device,
                                               .dtype = flags.dtype}));
  OUTRIDER_RETURN_IF_ERROR(CheckHeadCovers(tokenizer, model->info()));
  NodeDescription description = DescribeModel(tokenizer, model->info());
  description.draft_strategy = name;
  return StrategyAndDescription{
      std::make_unique<ModelStrategy>(std::move(model), tokenizer.vocab_size()),
      std::move(description)};
}

}  // namespace outrider
