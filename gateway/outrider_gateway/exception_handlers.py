# SPDX-License-Identifier: Apache-2.0
"""Whatever an endpoint raises, as an answer in OpenAI's shape."""
from __future__ import annotations

import grpc
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from .errors import ApiError
from .rpc_errors import from_rpc

_CODES = {404: "not_found", 405: "method_not_allowed"}


async def _on_api_error(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, ApiError)
    return error.response()


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = {404: f"there is no {request.url.path} here", 405: f"{request.url.path} is not served for "
            f"{request.method}"}.get(error.status_code, error.detail)
    response = ApiError(error.status_code, what, code=_CODES.get(error.status_code)).response()
    response.headers.update(error.headers or {})  # such as the methods that are allowed
    return response


async def _on_disconnect(request: Request, error: Exception) -> Response:
    del request, error
    return Response(status_code=499)  # nobody reads it


async def _on_rpc_error(request: Request, error: Exception) -> Response:
    del request
    assert isinstance(error, grpc.aio.AioRpcError)
    return from_rpc(error).response()


async def _on_bug(request: Request, error: Exception) -> Response:
    del request, error  # the server logs it
    return ApiError(500, "the gateway failed on this request; its log says why").response()


EXCEPTION_HANDLERS = {ApiError: _on_api_error, HTTPException: _on_http_error, ClientDisconnect: _on_disconnect,
                      grpc.aio.AioRpcError: _on_rpc_error, Exception: _on_bug}
