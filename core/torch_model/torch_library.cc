// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/torch_library.h"

#include <type_traits>

#include "core/torch_model/torch_causal_lm.h"

namespace outrider {

extern "C" __attribute__((visibility("default"))) const TorchLibrary*
OUTRIDER_TORCH_FUNCTION(LogFormat format) {
  SetLogFormat(format);
  static constexpr TorchLibrary kLibrary = {.load = LoadTorchCausalLm,
                                            .check = CheckTorchCausalLm};
  return &kLibrary;
}
static_assert(
    std::is_same_v<decltype(OUTRIDER_TORCH_FUNCTION), TorchLibraryFunction>);

}  // namespace outrider
