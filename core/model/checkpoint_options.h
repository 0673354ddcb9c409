// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_MODEL_CHECKPOINT_OPTIONS_H_
#define OUTRIDER_CORE_MODEL_CHECKPOINT_OPTIONS_H_

#include <string>

namespace outrider {

// Which weights are loaded, and what computes with them.
struct CheckpointOptions {
  std::string model_directory = {};
  // "cpu", "cuda" or "cuda:N".
  std::string device = "cpu";
  // "float32", "bfloat16" or "auto": bfloat16 where all matrices of the
  // checkpoint have it, whatever the CPU, so that all replicas serve one model;
  // else float32, which loses nothing of a float16. Activations are float32 in
  // any case. The log says which and why. A GPU has "bfloat16" and "float16",
  // and "auto" takes the one that all matrices have.
  std::string dtype = "auto";
  // A level of core/kernels by name, or "auto": the CPU's fastest one, by a
  // short measurement. A GPU takes no other than "auto". "aten": torch's own
  // operations everywhere, as a reference. What it came to is
  // ModelInfo::numerics.
  std::string kernels = "auto";
  // A pass on the CPU has so many, the calling one included. Bits do not depend
  // on it.
  int num_threads = 1;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_MODEL_CHECKPOINT_OPTIONS_H_
