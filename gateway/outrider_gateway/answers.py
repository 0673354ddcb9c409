# SPDX-License-Identifier: Apache-2.0
"""The ASGI side of answers: they end with a reader who leaves, or who does not read for too long."""
from __future__ import annotations

import asyncio
import dataclasses
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from starlette.types import Receive, Scope, Send

from .admission import Admitted
from .errors import ApiError
from .metrics import METRICS
from .observing import Observation
from .serving import error_events

log = logging.getLogger(__name__)

# Proxies take a connection for dead that is silent for a minute or so.
PING_SECONDS = 15.0
# Less than the server's buffer: how far a slow reader has come is seen.
_SLICE = 1 << 16
# A stream that is cut off has so long for its last words.
_LAST_WORDS_SECONDS = 1.0

Headers = list[tuple[bytes, bytes]]


class SlowReaderError(Exception):
    """A reader has not read for too long."""


@dataclasses.dataclass
class Served:
    """The request that an answer is for. It runs until `end`, after the answer's last byte."""

    admitted: Admitted
    observation: Observation
    slow_reader_seconds: float
    end: Callable[[], Awaitable[None]]


class Answer:
    """Writes what `_parts` yields, while it watches the reader."""

    def __init__(self, served: Served, headers: Headers) -> None:
        self._served = served
        self._headers = headers
        self._sending_since: float | None = None
        self._sent_at = float("inf")
        self._pings: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send_all(send))
        leaving = asyncio.create_task(until_disconnected(receive))
        try:
            with self._served.admitted.may_be_cut_off():
                await self._watch(sending, leaving, send)
        except ApiError as error:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            await self._cut_off(error, send)
        finally:
            try:
                tasks = {sending, leaving, *self._pings}
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            finally:  # a request that is cut off only now has to end, too
                await self._served.end()

    async def _watch(self, sending: asyncio.Task[None], leaving: asyncio.Task[None], send: Send) -> None:
        tick = min(self._served.slow_reader_seconds / 4, PING_SECONDS / 2)
        while not (await asyncio.wait({sending, leaving}, timeout=tick, return_when=asyncio.FIRST_COMPLETED))[0]:
            if self._is_stuck():
                METRICS.readers_dropped.inc()
                log.warning("a reader did not read for %g s and is dropped request_id=%s",
                            self._served.slow_reader_seconds, self._served.observation.request_id)
                raise SlowReaderError  # the server closes the connection
            self._tick(sending, send)
        if sending.done():
            sending.result()  # what went wrong is for the log

    def _is_stuck(self) -> bool:
        return self._sending_since is not None and \
            time.monotonic() > self._sending_since + self._served.slow_reader_seconds

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        self._sent_at = time.monotonic()
        async for part in self._parts():
            await self._write(part, send)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _write(self, part: bytes, send: Send) -> None:
        # The server lets this wait once its buffer is full; a timer for each would cost as much as the part.
        self._sending_since = time.monotonic()
        await send({"type": "http.response.body", "body": part, "more_body": True})
        self._sent_at, self._sending_since = self._sending_since, None

    def _parts(self) -> AsyncIterator[bytes]:
        raise NotImplementedError

    def _tick(self, sending: asyncio.Task[None], send: Send) -> None:
        """Nothing has ended yet."""

    async def _cut_off(self, error: ApiError, send: Send) -> None:
        """The process ends before this answer has."""


class WholeReply(Answer):
    """JSON whose length is known."""

    def __init__(self, served: Served, body: Sequence[bytes]) -> None:
        super().__init__(served, [(b"content-type", b"application/json"),
                                  (b"content-length", b"%d" % sum(map(len, body)))])
        self._body = body

    async def _parts(self) -> AsyncIterator[bytes]:
        for part in self._body:
            for begin in range(0, len(part), _SLICE):
                yield part[begin:begin + _SLICE]


class EventStream(Answer):
    """Server-sent events. A comment is sent where there is no event for a while."""

    def __init__(self, served: Served, events: AsyncIterator[bytes]) -> None:
        super().__init__(served, [(b"content-type", b"text/event-stream; charset=utf-8"),
                                  (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")])
        self._events = events

    async def _parts(self) -> AsyncIterator[bytes]:
        try:
            async for event in self._events:
                yield event
        except ApiError as error:
            yield self._end_with(error)

    def _tick(self, sending: asyncio.Task[None], send: Send) -> None:
        if self._sending_since is None and time.monotonic() >= self._sent_at + PING_SECONDS:
            # It may have to wait for a slow reader, whom this task watches.
            ping = asyncio.create_task(self._ping(sending, send))
            self._pings.add(ping)
            ping.add_done_callback(self._pings.discard)

    async def _ping(self, sending: asyncio.Task[None], send: Send) -> None:
        # The stream may have ended between the tick and this task's turn; nothing may follow its end.
        if not sending.done():
            await self._write(b": ping\n\n", send)

    async def _cut_off(self, error: ApiError, send: Send) -> None:
        last = self._end_with(error)
        try:
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                await self._write(last, send)
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except TimeoutError:
            pass  # a slow reader; the server cuts it off

    def _end_with(self, error: ApiError) -> bytes:
        self._served.observation.error = error
        return error_events(error)


async def until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
