# SPDX-License-Identifier: Apache-2.0
"""What a coordinator's status means to an HTTP client.

Only what a coordinator says of the caller's own request goes out as it is: gRPC's own words have addresses, and how a
stream is resumed is the gateway's business.
"""
from __future__ import annotations

from collections.abc import Mapping

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from .errors import INVALID_VALUE, ApiError, OutOfMemoryError, context_exceeded

_HTTP_STATUS = {
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNAUTHENTICATED: 502,  # between gateway and coordinator: not the caller's
    grpc.StatusCode.PERMISSION_DENIED: 502,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.CANCELLED: 503,
}
_MESSAGES = {
    409: "the model behind this text was replaced by another one; send the request again",
    413: "the request has more bytes than a coordinator accepts; send less",
    429: "the model has as many requests as it can take now; try again later",
    502: "the gateway may not call its coordinators; its log says why",
    503: "the model does not answer now; try again later",
    504: "the request took too long",
}
_FAILED = "the model failed on this request; the coordinator's log says why"
_CODES = {400: INVALID_VALUE, 413: "request_too_large"}

# What a coordinator says of its refusals, besides their codes (coordinator/nodes/refusal_reasons.h).
_DOMAIN = "outrider"
_POISON, _TOO_LONG, _ROUND_TOO_LARGE = "POISON", "CONTEXT_LENGTH_EXCEEDED", "MESSAGE_TOO_LARGE"
_OUT_OF_MEMORY = "OUT_OF_KV_MEMORY"
# The request may be served elsewhere, or later, without a change.
_STATUS_OF_REASON = {"MODEL_NOT_SERVED": 409, "COORDINATOR_FLAGS": 500}
# The API's parameters, by the fields of a coordinator's request that are made of them.
_PARAMS = {
    **{name: name for name in (
        "prompt", "temperature", "top_k", "top_p", "min_p", "max_tokens", "repetition_penalty", "presence_penalty",
        "frequency_penalty", "logit_bias", "logprobs", "stop_token_ids")},
    **{name: "outrider" for name in ("num_speculative_tokens", "acceptance_rule", "schedule", "draft_options")},
    "stop_strings": "stop"}
# gRPC refuses such a request before its service sees it, by a code that says something else, and words of its own.
_REQUEST_TOO_LARGE = "larger than max"

# Where a server does not say how long to wait.
_DEFAULT_RETRY_SECONDS = 1.0


def from_rpc(error: grpc.aio.AioRpcError) -> ApiError:
    """The refusal that a coordinator's status becomes."""
    code = error.code()
    details = error.details() or ""
    why = _error_info(error)
    if why.reason == _POISON:
        # Each try takes two verifiers, which the others' texts are on.
        return ApiError(500, "verifiers were lost, one after the other, while they had this request: do not send it "
                             "again before it is known what they died of", code=code.name.lower(), is_final=True)
    if why.reason == _TOO_LONG and (too_long := _too_long(why.metadata)) is not None:
        return too_long
    if why.reason == _ROUND_TOO_LARGE:
        return ApiError(400, "num_speculative_tokens: a round of so many has more bytes than a node accepts; ask for "
                             "fewer", param="outrider", code=INVALID_VALUE)
    if why.reason == _OUT_OF_MEMORY:
        return OutOfMemoryError(details, int(why.metadata.get("num_tokens", "0")), retry_delay(error))
    status = _status_of(code, why.reason, details)
    if status == 400:
        return ApiError(400, details or "the model does not serve this request",
                        param=_PARAMS.get(why.metadata.get("field", "")), code=_CODES[400])
    retry = retry_delay(error) if status in (429, 503) else None
    # What took all of its time once would do so again.
    return ApiError(status, _MESSAGES.get(status, _FAILED), code=_CODES.get(status, code.name.lower()),
                    retry_after=retry, is_final=status == 504)


def _status_of(code: grpc.StatusCode, reason: str, details: str) -> int:
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _REQUEST_TOO_LARGE in details:
        return 413
    return _STATUS_OF_REASON.get(reason, _HTTP_STATUS.get(code, 500))


def _too_long(metadata: Mapping[str, str]) -> ApiError | None:
    """None where the numbers are not there."""
    is_whole = "num_tokens" in metadata
    try:
        return context_exceeded(int(metadata["context_length"]),
                                int(metadata["num_tokens" if is_whole else "least_num_tokens"]), is_whole=is_whole)
    except (KeyError, ValueError):
        return None


def retry_delay(error: grpc.aio.AioRpcError) -> float:
    """Seconds that google.rpc.RetryInfo asks for, else a second."""
    info = error_details_pb2.RetryInfo()
    if not _unpack_detail(error, info):
        return _DEFAULT_RETRY_SECONDS
    return max(0.0, float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9))


def _error_info(error: grpc.aio.AioRpcError) -> error_details_pb2.ErrorInfo:
    """Why a coordinator refuses; empty where it does not say, or somebody else does."""
    info = error_details_pb2.ErrorInfo()
    return info if _unpack_detail(error, info) and info.domain == _DOMAIN else error_details_pb2.ErrorInfo()


def _unpack_detail(error: grpc.aio.AioRpcError, into: Message) -> bool:
    """The first detail of this kind; false where the status has none."""
    try:
        status = rpc_status.from_call(error)  # type: ignore[arg-type]
        return any(detail.Unpack(into) for detail in (status.details if status is not None else ()))
    except (DecodeError, ValueError):  # details that are no message, or that contradict the status
        return False
