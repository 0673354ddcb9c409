// SPDX-License-Identifier: Apache-2.0
#include "core/torch_model/torch_library.h"

#include "core/torch_model/torch_causal_lm.h"

namespace outrider {

// kTorchLibrarySymbol.
extern "C" __attribute__((visibility("default"))) const TorchLibrary*
OutriderTorchLibrary1(LogFormat format) {
  SetLogFormat(format);
  static constexpr TorchLibrary kLibrary = {.load = LoadTorchCausalLm,
                                            .check = CheckTorchCausalLm};
  return &kLibrary;
}

}  // namespace outrider
