// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_LOAD_MODEL_H_
#define OUTRIDER_CORE_NODE_LOAD_MODEL_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/causal_lm.h"
#include "core/model/checkpoint_options.h"
#include "core/node/node_flags.h"
#include "core/wire/node_description.h"

namespace outrider {

struct LoadedModel {
  std::unique_ptr<CausalLm> model = {};
  NodeDescription description = {};
};

// Given by a program, as the nodes' libraries are built without torch.
using WeightsLoader = std::function<absl::StatusOr<std::unique_ptr<CausalLm>>(
    const CheckpointOptions&)>;

// The model that the flags name with its tokenizer, or a simulated one.
// FAILED_PRECONDITION where the two do not belong together; otherwise what
// loading them says.
absl::StatusOr<LoadedModel> LoadModel(const NodeFlags& flags,
                                      const std::string& simulated_name,
                                      const WeightsLoader& load_weights);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_LOAD_MODEL_H_
