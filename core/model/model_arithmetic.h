// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_MODEL_ARITHMETIC_H_
#define OUTRIDER_CORE_MODEL_MODEL_ARITHMETIC_H_

#include <string>

#include "core/model/model_config.h"

namespace outrider {

// What of a configuration makes other rows of the same tensors, as one line of
// text: two models with the same weights are the same one only where it is
// equal. Sizes are not in it, as the tensors have them, nor what limits a
// session or ends a text.
std::string DescribeArithmetic(const ModelConfig& config);

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_MODEL_ARITHMETIC_H_
