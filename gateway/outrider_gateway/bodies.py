# SPDX-License-Identifier: Apache-2.0
"""The bodies of requests: each has a bounded length and time to arrive. What becomes of them, and whole replies with
their details, have bounded bytes together."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Iterator

from starlette.requests import Request

from .errors import ApiError


@dataclasses.dataclass(frozen=True)
class BodyLimits:
    most_bytes: int = 8 << 20  # of one
    # Bytes of all: of a body and what it is made of until its prompts are made, and then of these for as long as
    # their request runs, as a stream that breaks is resumed with them. Taking token ids apart takes eight times as
    # much, but of one body after the other.
    most_bytes_together: int = 256 << 20
    # This much of each is not counted, since the number of requests bounds it: ordinary chats find room while others
    # send books.
    free_bytes: int = 64 << 10
    seconds: float = 60.0


class Bodies:
    """The bodies of all requests. Confined to one event loop."""

    def __init__(self, limits: BodyLimits) -> None:
        self.limits = limits
        self.num_bytes = 0

    @contextlib.contextmanager
    def hold(self) -> Iterator[HeldBody]:
        """A body's place, until its request has ended."""
        held = HeldBody(self)
        try:
            yield held
        finally:
            held.grow(-held.num_bytes)


class HeldBody:
    """One request's part of what all may take."""

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self.num_bytes = 0

    def grow(self, by: int) -> None:
        """ApiError 429 where there is no room for so many bytes more; then nothing is changed."""
        limits = self._bodies.limits
        counted = max(0, self.num_bytes + by - limits.free_bytes) - max(0, self.num_bytes - limits.free_bytes)
        if counted > 0 and self._bodies.num_bytes + counted > limits.most_bytes_together:
            raise ApiError(429, "the gateway holds as many bytes of requests and replies as it may; try again later",
                           code="rate_limit_exceeded", retry_after=1.0)
        self.num_bytes += by
        self._bodies.num_bytes += counted

    def become(self, num_bytes: int) -> None:
        """What is kept now, in place of all before; as `grow`."""
        self.grow(num_bytes - self.num_bytes)

    async def read(self, request: Request) -> bytearray:
        """ApiError where the body is too large, does not arrive in time, or finds no room."""
        limits = self._bodies.limits
        announced = request.headers.get("content-length", "")
        if announced.isdecimal() and int(announced) > limits.most_bytes:
            raise self._too_large()
        body = bytearray()
        try:
            async with asyncio.timeout(limits.seconds):
                async for part in request.stream():
                    # Counted as they come: who announces bytes and sends none takes nobody's room.
                    self.grow(len(part))
                    body += part
                    if len(body) > limits.most_bytes:
                        raise self._too_large()
        except TimeoutError:
            raise ApiError(408, f"the body did not arrive within {limits.seconds:g} s", code="timeout") from None
        return body

    def _too_large(self) -> ApiError:
        return ApiError(413, f"the body is larger than {self._bodies.limits.most_bytes} bytes",
                        code="request_too_large")
