// SPDX-License-Identifier: Apache-2.0
#include "core/rpc/status_convert.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/error_reason.h"
#include "core/base/node_drains.h"
#include "core/base/retry_delay.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace outrider {
namespace {

using google::protobuf::util::TimeUtil;

// A peer may send anything.
bool IsDelay(const google::protobuf::Duration& delay) {
  return delay.seconds() >= 0 &&
         delay.seconds() <= TimeUtil::kDurationMaxSeconds &&
         delay.nanos() >= 0 && delay.nanos() < 1'000'000'000;
}

// Who adds a longer one to the time of a clock leaves the clock's range.
constexpr std::chrono::hours kLongestDelay(30 * 365 * 24);

std::optional<std::chrono::milliseconds> RetryDelayIn(
    const google::rpc::Status& status) {
  google::rpc::RetryInfo retry;
  for (const google::protobuf::Any& detail : status.details()) {
    if (!detail.UnpackTo(&retry) || !IsDelay(retry.retry_delay())) continue;
    const std::chrono::milliseconds delay(
        TimeUtil::DurationToMilliseconds(retry.retry_delay()));
    return std::min<std::chrono::milliseconds>(delay, kLongestDelay);
  }
  return std::nullopt;
}

// Whose reasons those of our statuses are.
constexpr char kErrorDomain[] = "outrider";

std::optional<google::rpc::ErrorInfo> ErrorInfoIn(
    const google::rpc::Status& status) {
  google::rpc::ErrorInfo info;
  for (const google::protobuf::Any& detail : status.details()) {
    if (detail.UnpackTo(&info) && info.domain() == kErrorDomain) return info;
  }
  return std::nullopt;
}

// A payload, which no peer's status has.
constexpr char kTooLargeUrl[] = "outrider/message-too-large";

// gRPC's message size filter has no code of its own, but words.
bool IsTooLarge(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED &&
         absl::StrContains(status.error_message(), "larger than max");
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  const auto code = static_cast<grpc::StatusCode>(status.code());
  std::string message(status.message());
  google::rpc::Status details;
  if (const auto delay = RetryDelayOf(status)) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() =
        TimeUtil::MillisecondsToDuration(delay->count());
    details.add_details()->PackFrom(retry);
  }
  if (const auto reason = ErrorReasonOf(status)) {
    google::rpc::ErrorInfo info;
    info.set_reason(*reason);
    info.set_domain(kErrorDomain);
    for (const auto& [name, value] : ErrorMetadataOf(status)) {
      (*info.mutable_metadata())[name] = value;
    }
    details.add_details()->PackFrom(info);
  }
  if (details.details().empty()) return grpc::Status(code, std::move(message));
  details.set_code(code);
  details.set_message(message);
  return grpc::Status(code, std::move(message), details.SerializeAsString());
}

absl::Status FromGrpcStatus(const grpc::Status& grpc_status) {
  if (IsTooLarge(grpc_status)) {
    absl::Status too_large = absl::FailedPreconditionError(
        absl::StrCat("a message has more bytes than its receiver accepts: ",
                     grpc_status.error_message()));
    too_large.SetPayload(kTooLargeUrl, absl::Cord("1"));
    return too_large;
  }
  absl::Status status(static_cast<absl::StatusCode>(grpc_status.error_code()),
                      grpc_status.error_message());
  google::rpc::Status details;
  if (!details.ParseFromString(grpc_status.error_details())) return status;
  if (const auto info = ErrorInfoIn(details);
      info.has_value() && info->reason() == kNodeDrainsReason) {
    status = WithErrorReason(std::move(status), kNodeDrainsReason);
  }
  if (const auto delay = RetryDelayIn(details)) {
    return WithRetryDelay(std::move(status), *delay);
  }
  return status;
}

absl::Status FromCoordinatorStatus(const grpc::Status& grpc_status) {
  absl::Status status = FromGrpcStatus(grpc_status);
  google::rpc::Status details;
  if (status.ok() || IsMessageTooLarge(status) ||
      !details.ParseFromString(grpc_status.error_details())) {
    return status;
  }
  const auto info = ErrorInfoIn(details);
  if (!info.has_value()) return status;
  status = WithErrorReason(std::move(status), info->reason());
  for (const auto& [name, value] : info->metadata()) {
    status = WithErrorMetadata(std::move(status), name, value);
  }
  return status;
}

bool IsMessageTooLarge(const absl::Status& status) {
  return status.GetPayload(kTooLargeUrl).has_value();
}

}  // namespace outrider
