# SPDX-License-Identifier: Apache-2.0
"""What a coordinator's status means to an HTTP client.

Only what a coordinator says of the caller's own request goes out as it is: gRPC's own words have addresses, and how a
stream is resumed is the gateway's business.
"""
from __future__ import annotations

import re

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from .errors import INVALID_VALUE, ApiError, context_exceeded

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

# Coordinators tell these apart by their words alone.
_TOO_LONG = re.compile(r"the prompt has (at least )?(\d+) tokens; the model's context of (\d+)")
_NO_MEMORY = "have memory for"
_ROUND_TOO_LARGE = "more bytes than its receiver accepts"
_OTHER_MODEL = "that this stream began with"
_OPERATORS = "this coordinator's --"
_MESSAGE_TOO_LARGE = "larger than max"  # gRPC's own, of a request

# Where a server does not say how long to wait.
_DEFAULT_RETRY_SECONDS = 1.0


def from_rpc(error: grpc.aio.AioRpcError) -> ApiError:
    """The refusal that a coordinator's status becomes."""
    code = error.code()
    details = error.details() or ""
    if _is_poison(error):
        # Each try takes two verifiers, which the others' texts are on.
        return ApiError(500, "verifiers were lost, one after the other, while they had this request: do not send it "
                             "again before it is known what they died of", code=code.name.lower(), is_final=True)
    if code is grpc.StatusCode.INVALID_ARGUMENT and (too_long := _TOO_LONG.search(details)) is not None:
        return context_exceeded(int(too_long[3]), int(too_long[2]), is_whole=too_long[1] is None)
    if code is grpc.StatusCode.FAILED_PRECONDITION and _ROUND_TOO_LARGE in details:
        return ApiError(400, "num_speculative_tokens: a round of so many has more bytes than a node accepts; ask for "
                             "fewer", param="outrider", code=INVALID_VALUE)
    status = _status_of(code, details)
    if status == 400:
        return ApiError(400, details or "the model does not serve this request", param=_param(details),
                        code=_CODES[400])
    retry = retry_delay(error) if status in (429, 503) else None
    # What took all of its time once would do so again.
    return ApiError(status, _MESSAGES.get(status, _FAILED), code=_CODES.get(status, code.name.lower()),
                    retry_after=retry, is_final=status == 504)


def _status_of(code: grpc.StatusCode, details: str) -> int:
    if code is grpc.StatusCode.FAILED_PRECONDITION:
        # The request may be served elsewhere, or later, without a change.
        for words, status in ((_NO_MEMORY, 503), (_OTHER_MODEL, 409), (_OPERATORS, 500)):
            if words in details:
                return status
    if code is grpc.StatusCode.RESOURCE_EXHAUSTED and _MESSAGE_TOO_LARGE in details:
        return 413
    return _HTTP_STATUS.get(code, 500)


def retry_delay(error: grpc.aio.AioRpcError) -> float:
    """Seconds that google.rpc.RetryInfo asks for, else a second."""
    info = error_details_pb2.RetryInfo()
    if not _unpack_detail(error, info):
        return _DEFAULT_RETRY_SECONDS
    return max(0.0, float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9))


def _is_poison(error: grpc.aio.AioRpcError) -> bool:
    """Whether a coordinator says that its verifiers died of the request."""
    info = error_details_pb2.ErrorInfo()
    return _unpack_detail(error, info) and (info.domain, info.reason) == ("outrider", "POISON")


def _unpack_detail(error: grpc.aio.AioRpcError, into: Message) -> bool:
    """The first detail of this kind; false where the status has none."""
    try:
        status = rpc_status.from_call(error)  # type: ignore[arg-type]
        return any(detail.Unpack(into) for detail in (status.details if status is not None else ()))
    except (DecodeError, ValueError):  # details that are no message, or that contradict the status
        return False


# The names that OpenAI has for what a coordinator's message begins with.
_PARAMS = {"stop strings": "stop", "a stop string": "stop", "num_speculative_tokens": "outrider",
           "the prompt": "prompt", "token id": "prompt"}
_KNOWN = ("temperature", "top_k", "top_p", "min_p", "max_tokens", "repetition_penalty", "presence_penalty",
          "frequency_penalty", "logit_bias", "logprobs", "seed")


def _param(details: str) -> str | None:
    for start, name in _PARAMS.items():
        if details.startswith(start):
            return name
    if "acceptance_rule" in details:
        return "outrider"
    return next((name for name in _KNOWN if name in details), None)
