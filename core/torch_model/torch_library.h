// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_TORCH_LIBRARY_H_
#define OUTRIDER_CORE_TORCH_MODEL_TORCH_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/log.h"
#include "core/model/causal_lm.h"
#include "core/model/checkpoint_options.h"

namespace outrider {

// What the library with libtorch has for programs, which open it at run time
// (open_torch_model.h). It has this folder's code and what that needs of others
// inside, with variables of their own.
struct TorchLibrary {
  absl::StatusOr<std::unique_ptr<CausalLm>> (*load)(
      const CheckpointOptions& options) = nullptr;
  absl::Status (*check)(const CheckpointOptions& options) = nullptr;
};

// What it exports; its log lines look so from then on. The name has a hash of
// the headers whose types pass (CMakeLists.txt): a library of another build is
// not taken for this one's.
using TorchLibraryFunction = const TorchLibrary*(LogFormat format);

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_TORCH_LIBRARY_H_
