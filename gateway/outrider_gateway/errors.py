# SPDX-License-Identifier: Apache-2.0
"""Refusals in OpenAI's shape: {"error": {"message", "type", "param", "code"}}."""
from __future__ import annotations

import math
from typing import Any

from starlette.responses import JSONResponse

# The code of values that cannot be, whoever finds that out.
INVALID_VALUE = "invalid_value"
_TOO_LONG = "context_length_exceeded"


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

    def headers(self) -> dict[str, str]:
        headers = {}
        if self.status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        if self.retry_after is not None:
            # Whole seconds, as HTTP has it; never 0, which would be a hot loop.
            headers["Retry-After"] = str(max(1, math.ceil(self.retry_after)))
        if self.is_final:
            headers["x-should-retry"] = "false"
        return headers

    def response(self) -> JSONResponse:
        return JSONResponse(self.body(), self.status, headers=self.headers())


class OutOfMemoryError(ApiError):
    """A text for which no verifier that is ready has the memory: others may be elsewhere, or come back.

    `num_tokens`: the text has no fewer; 0: it is not known how many.
    """

    def __init__(self, message: str, num_tokens: int, retry_after: float) -> None:
        super().__init__(503, message, code="out_of_kv_memory", retry_after=retry_after)
        self.num_tokens = num_tokens


_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error",
          404: "invalid_request_error", 405: "invalid_request_error", 408: "timeout", 413: "invalid_request_error",
          429: "rate_limit_error", 431: "invalid_request_error", 503: "service_unavailable", 504: "timeout"}


def context_exceeded(context_length: int, num_tokens: int, *, is_whole: bool = True,
                     param: str = "prompt") -> ApiError:
    """A prompt without room in the model's context, in OpenAI's words, which clients look for.

    `is_whole`: all of its tokens have been counted.
    """
    at_least = "" if is_whole else "at least "
    return ApiError(400, f"This model's maximum context length is {context_length} tokens. However, your {param} "
                         f"resulted in {at_least}{num_tokens} tokens. Please reduce the length of the {param}.",
                    param=param, code=_TOO_LONG)


def beyond_memory(longest_text: int, why: str) -> ApiError:
    """A prompt that has room in the model's context, but in no verifier's memory: `why` has its numbers."""
    return ApiError(400, f"This model's maximum context length is {longest_text} tokens here: {why}", param="prompt",
                    code=_TOO_LONG)


def unavailable(message: str) -> ApiError:
    return ApiError(503, message, code="unavailable", retry_after=1.0)
