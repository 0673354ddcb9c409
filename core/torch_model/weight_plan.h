// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_TORCH_MODEL_WEIGHT_PLAN_H_
#define OUTRIDER_CORE_TORCH_MODEL_WEIGHT_PLAN_H_

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/safetensors.h"

namespace outrider {

// Which tensor of a checkpoint goes where. First everything that a model needs
// is planned, then names and shapes are compared with the checkpoint, and only
// then bytes are read, so that a wrong checkpoint costs no time. Shares the
// tensors that it fills. Thread-compatible.
class WeightPlan {
 public:
  // The checkpoint's `name`, [destination's sizes], converted to its dtype.
  void Fill(const std::string& name, const at::Tensor& destination);
  // The same for one stored as [in, out] where [out, in] is wanted.
  void FillTransposed(const std::string& name, const at::Tensor& destination);
  // Not used by the model, but known: may be there, with any shape.
  void Allow(const std::string& name);
  // May be there, and must then hold the very bytes of `original`.
  void AllowCopy(const std::string& name, const std::string& original);

  // Compares names, shapes and dtypes; codes: LoadWeights.
  absl::Status Check(const Checkpoint& checkpoint) const;
  // Checks, then reads all. Returns the hex sha256 over the checkpoint: for
  // each tensor, by name, a line "name dtype shape sha256(bytes)". The same for
  // one file and for shards.
  absl::StatusOr<std::string> Run(const Checkpoint& checkpoint) const;

 private:
  struct Part {
    at::Tensor destination = {};  // undefined: read for the hash alone
    bool is_transposed = false;
    std::string copy_of = {};
  };

  std::map<std::string, Part> parts_;
  std::map<std::string, Part> optional_parts_;
};

}  // namespace outrider

#endif  // OUTRIDER_CORE_TORCH_MODEL_WEIGHT_PLAN_H_
