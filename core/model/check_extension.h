// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_CHECK_EXTENSION_H_
#define OUTRIDER_CORE_MODEL_CHECK_EXTENSION_H_

#include "absl/status/status.h"
#include "core/model/causal_lm.h"

namespace outrider {

// INVALID_ARGUMENT, as CausalLm::Extend says, for one that such a model can not
// run.
absl::Status CheckExtension(const Extension& extension, const ModelInfo& model);

// Where the extension's copied block goes.
inline KvBlockId CopyTarget(const Extension& extension) {
  return extension.blocks[extension.cached_length / kKvBlockLength];
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_CHECK_EXTENSION_H_
