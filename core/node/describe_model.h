// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_NODE_DESCRIBE_MODEL_H_
#define OUTRIDER_CORE_NODE_DESCRIBE_MODEL_H_

#include <string>

#include "absl/status/status.h"
#include "core/model/causal_lm.h"
#include "core/tokenizer/tokenizer.h"
#include "core/wire/node_description.h"

namespace outrider {

// What a node with this model says of itself; the node adds its own limits. A
// text ends at the ids of `info` and at the tokenizer's own, as in vLLM.
NodeDescription DescribeModel(const Tokenizer& tokenizer,
                              const ModelInfo& info);

// FAILED_PRECONDITION where the tokenizer has ids that the model's head lacks,
// as the directory mixes two models; or lacks an id that ends texts, as nodes
// offer no row beyond the tokenizer's and texts would never end. Of `info` the
// vocabulary's size and these ids are read.
absl::Status CheckHeadCovers(const Tokenizer& tokenizer, const ModelInfo& info);

// Warns in the log where no token ends a text.
void WarnOfEndlessTexts(const NodeDescription& description);

// "demo-target, bfloat16 on cpu".
std::string Summary(const NodeDescription& description);

}  // namespace outrider

#endif  // OUTRIDER_CORE_NODE_DESCRIBE_MODEL_H_
