// SPDX-License-Identifier: Apache-2.0
#ifndef OUTRIDER_CORE_BASE_ERROR_REASON_H_
#define OUTRIDER_CORE_BASE_ERROR_REASON_H_

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace outrider {

// Why a call failed, for programs that have to tell failures of one code apart:
// capitals, as a payload of the status. It is told to whoever calls us, as a
// google.rpc.ErrorInfo (core/rpc/status_convert). A client believes what its
// coordinator says; of a node one is believed (core/base/node_drains.h).
inline constexpr char kErrorReasonUrl[] = "outrider/error-reason";
// What belongs to the reason has a payload each, with its name after this.
inline constexpr char kErrorMetadataUrl[] = "outrider/error-metadata/";

inline absl::Status WithErrorReason(absl::Status status,
                                    absl::string_view reason) {
  status.SetPayload(kErrorReasonUrl, absl::Cord(reason));
  return status;
}

// Nothing where the status does not say.
inline std::optional<std::string> ErrorReasonOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kErrorReasonUrl);
  if (!payload.has_value()) return std::nullopt;
  return std::string(*payload);
}

// `name` is in lower case, with underscores.
inline absl::Status WithErrorMetadata(absl::Status status,
                                      absl::string_view name,
                                      absl::string_view value) {
  status.SetPayload(absl::StrCat(kErrorMetadataUrl, name), absl::Cord(value));
  return status;
}

inline std::map<std::string, std::string> ErrorMetadataOf(
    const absl::Status& status) {
  std::map<std::string, std::string> metadata;
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& value) {
    if (absl::ConsumePrefix(&url, kErrorMetadataUrl)) {
      metadata.emplace(std::string(url), std::string(value));
    }
  });
  return metadata;
}

// The reason of a request that is wrong in one field, whose name is `field` of
// the metadata.
inline constexpr char kInvalidValueReason[] = "INVALID_VALUE";
inline constexpr char kFieldMetadata[] = "field";

// INTERNAL: verifiers died while they had the request. One that sends what has
// failed again, as HTTP clients do, would take two verifiers more.
inline constexpr char kPoisonReason[] = "POISON";

// What fails for a reason of its own keeps that.
inline absl::Status AtField(absl::string_view field, absl::Status status) {
  if (status.ok() || ErrorReasonOf(status).has_value()) return status;
  return WithErrorMetadata(
      WithErrorReason(std::move(status), kInvalidValueReason), kFieldMetadata,
      field);
}
template <typename T>
absl::StatusOr<T> AtField(absl::string_view field, absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return AtField(field, result.status());
}

}  // namespace outrider

#endif  // OUTRIDER_CORE_BASE_ERROR_REASON_H_
