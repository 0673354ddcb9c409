# SPDX-License-Identifier: Apache-2.0
"""Calls of functions in a chat's messages. OpenAI's API has their arguments as a text of JSON; most chat templates,
which write them as JSON, want what it says, as they get it of vLLM."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pydantic_core

from .errors import INVALID_VALUE, ApiError


def texts(calls: Any) -> Iterator[str]:
    """The arguments that are texts."""
    for call in calls if isinstance(calls, list) else ():
        arguments = (_function_of(call) or {}).get("arguments")
        if isinstance(arguments, str):
            yield arguments


def with_objects(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages with the arguments of their calls taken apart, in copies; ApiError 400 names those that are no
    object."""
    return [_with_calls(message, f"messages.{i}.tool_calls") for i, message in enumerate(messages)]


def _with_calls(message: dict[str, Any], place: str) -> dict[str, Any]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [
        _with_object(call, f"{place}.{i}.function.arguments") for i, call in enumerate(calls)]}


def _with_object(call: Any, place: str) -> Any:
    function = _function_of(call)
    if function is None:
        return call  # the template may know what it is
    return {**call, "function": {**function, "arguments": _object_of(function.get("arguments"), place)}}


def _function_of(call: Any) -> dict[str, Any] | None:
    function = call.get("function") if isinstance(call, dict) else None
    return function if isinstance(function, dict) else None


def _object_of(arguments: Any, place: str) -> dict[str, Any]:
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            arguments = pydantic_core.from_json(arguments, allow_inf_nan=False)
        except ValueError as error:
            raise _refusal(f"{place}: is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise _refusal(f"{place}: must be a JSON object")
    return arguments


def _refusal(message: str) -> ApiError:
    return ApiError(400, message, param="messages", code=INVALID_VALUE)
