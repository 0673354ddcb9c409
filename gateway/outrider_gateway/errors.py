# SPDX-License-Identifier: Apache-2.0
"""Refusals in OpenAI's shape: {"error": {"message", "type", "param", "code"}}."""
from __future__ import annotations

import math
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc import error_details_pb2
from grpc_status import rpc_status
from starlette.responses import JSONResponse


class ApiError(Exception):
    """A refusal that the caller reads: a status, a message that says what to do, and the parameter.

    `is_final`: OpenAI's clients send nothing again, as they do of themselves after a 5xx.
    """

    def __init__(self, status: int, message: str, *, param: str | None = None, code: str | None = None,
                 retry_after: float | None = None, is_final: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code
        self.retry_after = retry_after
        self.is_final = is_final

    def body(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": _TYPES.get(self.status, "server_error"),
                          "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        headers = {}
        if self.retry_after is not None:
            # Whole seconds, as HTTP has it; never 0, which would be a hot loop.
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after)))
        if self.is_final:
            headers["x-should-retry"] = "false"
        return JSONResponse(self.body(), self.status, headers=headers)


_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
          404: "invalid_request_error", 405: "invalid_request_error", 408: "timeout", 413: "invalid_request_error",
          429: "rate_limit_error", 503: "service_unavailable", 504: "timeout"}

# What a gRPC status means to an HTTP client.
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

# Where a server does not say how long to wait.
_DEFAULT_RETRY_SECONDS = 1.0


def from_rpc(error: grpc.aio.AioRpcError) -> ApiError:
    """The refusal that a coordinator's status becomes."""
    code = error.code()
    if _is_poison(error):
        # Each try takes two verifiers, which the others' texts are on.
        return ApiError(500, "verifiers were lost, one after the other, while they had this request: do not send it "
                             "again before it is known what they died of", code=code.name.lower(), is_final=True)
    status = _HTTP_STATUS.get(code, 500)
    details = error.details() or ""
    # Only what a coordinator says of the caller's own request goes out as it is: gRPC's own words have addresses,
    # and how a stream is resumed is the gateway's business.
    is_callers = status in (400, 429)
    message = details if is_callers and details else {
        409: "the model behind this text was replaced by another one; send the request again",
        502: "the gateway may not call its coordinators; its log says why",
        503: "the model does not answer now; try again later",
        504: "the request took too long",
    }.get(status, "the model failed on this request; the coordinator's log says why")
    retry = retry_delay(error) if status in (429, 503) else None
    return ApiError(status, message, param=_param(details), code=code.name.lower(), retry_after=retry)


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
           "acceptance_rule": "outrider", "the prompt": "prompt", "token id": "prompt"}
_KNOWN = ("temperature", "top_k", "top_p", "min_p", "max_tokens", "repetition_penalty", "presence_penalty",
          "frequency_penalty", "logit_bias", "logprobs", "seed")


def _param(details: str) -> str | None:
    for start, name in _PARAMS.items():
        if details.startswith(start):
            return name
    return next((name for name in _KNOWN if name in details), None)
