// SPDX-License-Identifier: Apache-2.0
#include "core/node/load_model.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/node/describe_model.h"
#include "core/node/simulation.h"
#include "core/tokenizer/tokenizer_loader.h"

namespace outrider {

absl::StatusOr<LoadedModel> LoadModel(const NodeFlags& flags,
                                      const std::string& simulated_name,
                                      const WeightsLoader& load_weights) {
  if (flags.simulation.enabled) {
    std::unique_ptr<CausalLm> model =
        MakeSimulatedModel(flags.simulation, simulated_name);
    NodeDescription description = DescribeSimulated(model->info());
    return LoadedModel{std::move(model), std::move(description)};
  }
  OUTRIDER_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                            LoadTokenizer(flags.model));
  OUTRIDER_ASSIGN_OR_RETURN(std::unique_ptr<CausalLm> model,
                            load_weights(flags.Checkpoint()));
  OUTRIDER_RETURN_IF_ERROR(CheckHeadCovers(*tokenizer, model->info()));
  NodeDescription description = DescribeModel(*tokenizer, model->info());
  return LoadedModel{std::move(model), std::move(description)};
}

}  // namespace outrider
