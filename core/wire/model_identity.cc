// SPDX-License-Identifier: Apache-2.0
#include "core/wire/model_identity.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "outrider/v1/types.pb.h"

namespace outrider {
namespace {

absl::Status CheckEqual(absl::string_view what, absl::string_view wanted,
                        absl::string_view found) {
  if (wanted == found) return absl::OkStatus();
  const auto shown = [](absl::string_view value) {
    // Enough of a hash to tell it from others.
    return value.empty() ? "unknown" : value.substr(0, 12);
  };
  return absl::FailedPreconditionError(
      absl::StrCat(what, " ", shown(found), ", not ", shown(wanted)));
}

}  // namespace

absl::Status CheckSame(const ModelIdentity& wanted, const ModelIdentity& found,
                       Sameness sameness) {
  OUTRIDER_RETURN_IF_ERROR(
      CheckEqual("its weights are", wanted.weights_hash, found.weights_hash));
  OUTRIDER_RETURN_IF_ERROR(
      CheckEqual("its number type is", wanted.dtype, found.dtype));
  if (sameness == Sameness::kLaw) return absl::OkStatus();
  return CheckEqual("its kernels are", wanted.numerics, found.numerics);
}

v1::ModelIdentity ToProto(const ModelIdentity& model) {
  v1::ModelIdentity proto;
  proto.set_weights_hash(model.weights_hash);
  proto.set_dtype(model.dtype);
  proto.set_numerics(model.numerics);
  return proto;
}

ModelIdentity FromProto(const v1::ModelIdentity& proto) {
  return {.weights_hash = proto.weights_hash(),
          .dtype = proto.dtype(),
          .numerics = proto.numerics()};
}

std::string ToText(const ModelIdentity& model) {
  return absl::StrCat(model.weights_hash, ":", model.dtype, ":",
                      model.numerics);
}

absl::StatusOr<ModelIdentity> ParseModelIdentity(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ':');
  if (parts.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", text, "\" is not a model's WEIGHTS:DTYPE:NUMERICS"));
  }
  return ModelIdentity{
      .weights_hash = parts[0], .dtype = parts[1], .numerics = parts[2]};
}

}  // namespace outrider
