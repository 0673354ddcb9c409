// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_WIRE_MODEL_IDENTITY_H_
#define OUTRIDER_CORE_WIRE_MODEL_IDENTITY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace outrider {

namespace v1 {
class ModelIdentity;
}  // namespace v1

// What makes two models the same one: ModelIdentity in the proto.
struct ModelIdentity {
  std::string weights_hash = {};
  std::string dtype = {};
  std::string numerics = {};  // empty: unknown
  friend bool operator==(const ModelIdentity&, const ModelIdentity&) = default;
};

// Whether a text that one began the other may continue: what is promised of
// the text.
enum class Sameness {
  kLaw,   // its distribution: weights and number type
  kBits,  // its every token, so that the numerics count too
};

// FAILED_PRECONDITION says in what `found` differs from `wanted`: "its weights
// are 5d0e..., not 91fa...".
absl::Status CheckSame(const ModelIdentity& wanted, const ModelIdentity& found,
                       Sameness sameness);

v1::ModelIdentity ToProto(const ModelIdentity& model);
ModelIdentity FromProto(const v1::ModelIdentity& proto);

// Command lines have "HASH:float32:avx2". INVALID_ARGUMENT where it is not one.
std::string ToText(const ModelIdentity& model);
absl::StatusOr<ModelIdentity> ParseModelIdentity(absl::string_view text);

}  // namespace outrider

#endif  // OUTRIDER_CORE_WIRE_MODEL_IDENTITY_H_
