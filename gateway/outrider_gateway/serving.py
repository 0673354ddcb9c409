# SPDX-License-Identifier: Apache-2.0
"""Runs a request's choices side by side, for a whole reply or a stream of events."""
from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

from starlette.types import Receive, Scope, Send

from outrider.v1 import generation_pb2 as pb

from .errors import ApiError
from .generation import Generation, Tally
from .metrics import METRICS
from .replies import Json, Shape, finish_reason, round_details, text_of, usage
from .requests import Extras

log = logging.getLogger(__name__)

# Made once: json.dumps with options makes an encoder for each call.
_to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
# Messages that wait for a slow reader; then the coordinator waits too.
_MAX_QUEUED = 16


class Choices:
    """All choices of a request: their messages in the order of their coming, each with its choice's index.

    An async context manager: at its end, whatever ended it, every session is cancelled.
    """

    def __init__(self, generations: list[Generation]) -> None:
        self._generations = generations
        self._streams = [_watched(generation) for generation in generations]
        self._queue: asyncio.Queue[tuple[int, pb.GenerateResponse | ApiError]] = asyncio.Queue(_MAX_QUEUED)
        self._tasks: list[asyncio.Task[None]] = []
        self._held: list[tuple[int, pb.GenerateResponse]] = []

    @property
    def tallies(self) -> list[Tally]:
        return [generation.tally for generation in self._generations]

    async def __aenter__(self) -> Choices:
        # A single one needs no task of its own: what each message costs is what readers wait for.
        if len(self._streams) > 1:
            self._tasks = [asyncio.create_task(self._run(i, one)) for i, one in enumerate(self._streams)]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for stream in self._streams:
            await stream.aclose()

    async def begin(self) -> None:
        """Waits until every choice has begun; raises an ApiError where one is refused."""
        begun: set[int] = set()
        while len(begun) < len(self._generations):
            index, message = await self._next()
            begun.add(index)
            self._held.append((index, message))

    async def messages(self) -> AsyncIterator[tuple[int, pb.GenerateResponse]]:
        num_open = len(self._generations)
        while num_open:
            index, message = self._held.pop(0) if self._held else await self._next()
            if message.HasField("finish"):
                num_open -= 1
            yield index, message

    async def _next(self) -> tuple[int, pb.GenerateResponse]:
        if not self._tasks:
            return 0, await anext(self._streams[0])
        index, message = await self._queue.get()
        if isinstance(message, ApiError):
            raise message
        return index, message

    async def _run(self, index: int, stream: AsyncGenerator[pb.GenerateResponse]) -> None:
        try:
            async for message in stream:
                await self._queue.put((index, message))
        except ApiError as error:
            await self._queue.put((index, error))


async def _watched(generation: Generation) -> AsyncGenerator[pb.GenerateResponse]:
    """Its messages, which are counted; whatever goes wrong is an ApiError."""
    started = time.monotonic()
    seen_token = False
    try:
        async with contextlib.aclosing(generation.messages()) as messages:
            async for message in messages:
                if message.tokens:
                    METRICS.tokens.inc(len(message.tokens))
                    if not seen_token:
                        METRICS.time_to_first_token.observe(time.monotonic() - started)
                        seen_token = True
                yield message
    except ApiError:
        raise
    except Exception as error:
        log.exception("a generation failed")
        raise ApiError(500, "the gateway failed on this request; its log says why") from error


async def whole_reply(choices: Choices, shape: Shape, num_choices: int, extras: Extras) -> Json:
    count = len(choices.tallies)
    texts = [""] * count
    tokens: list[list[pb.GeneratedToken]] = [[] for _ in range(count)]
    reasons: list[str | None] = [None] * count
    rounds: list[list[Json]] = [[] for _ in range(count)]
    async for index, message in choices.messages():
        texts[index] += text_of(message)
        tokens[index] += message.tokens
        reasons[index] = finish_reason(message) or reasons[index]
        if extras.rounds and message.tokens:
            rounds[index].append(round_details(message))
    made = [shape.choice(i, texts[i], tokens[i], reasons[i]) for i in range(count)]
    for i, choice in enumerate(made):
        if extras.token_ids:
            choice["token_ids"] = [token.id for token in tokens[i]]
        if extras.rounds:
            choice["outrider"] = {"rounds": rounds[i]}
    reply = shape.envelope(made, is_chunk=False)
    reply["usage"] = usage(choices.tallies, num_choices)
    reply["outrider"] = {"seed": choices.tallies[0].seed}
    return reply


async def events(choices: Choices, shape: Shape, num_choices: int, extras: Extras) -> AsyncIterator[bytes]:
    """Server-sent events, from the first chunk to `[DONE]`."""
    # All but the choices is the same in every chunk: written once.
    envelope = shape.envelope([], is_chunk=True)
    del envelope["choices"]
    head = f"data: {_to_json(envelope)[:-1]},\"choices\":["

    def event(choice: Json) -> bytes:
        tail = ""
        if extras.continuous_usage:
            tail = f",\"usage\":{_to_json(usage(choices.tallies, num_choices))}"
        elif extras.usage:
            tail = ",\"usage\":null"
        return f"{head}{_to_json(choice)}]{tail}}}\n\n".encode()

    for index in range(len(choices.tallies)):
        if (first := shape.first_chunk(index)) is not None:
            yield event(first)
    try:
        async for index, message in choices.messages():
            text, reason = text_of(message), finish_reason(message)
            if not (text or reason or message.tokens):
                continue
            chunk = shape.chunk(index, text, list(message.tokens), reason)
            if extras.rounds:
                chunk["outrider"] = round_details(message)
            if extras.token_ids:
                chunk["token_ids"] = [token.id for token in message.tokens]
            if not (text or reason or extras.rounds or extras.token_ids or chunk["logprobs"]):
                continue  # tokens whose text is not certain yet
            yield event(chunk)
        if extras.usage:
            last = {**envelope, "choices": [], "usage": usage(choices.tallies, num_choices)}
            yield f"data: {_to_json(last)}\n\n".encode()
    except ApiError as error:
        yield f"data: {_to_json(error.body())}\n\n".encode()
    yield b"data: [DONE]\n\n"


class SlowReaderError(Exception):
    """A reader has not read for too long."""


class EventStream:
    """The ASGI side of a stream: ends with a reader who leaves, or who does not read for too long."""

    def __init__(self, body: AsyncIterator[bytes], headers: list[tuple[bytes, bytes]],
                 slow_reader_seconds: float, on_end: Callable[[], Awaitable[None]]) -> None:
        self._body = body
        self._headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache"),
                         (b"x-accel-buffering", b"no"), *headers]
        self._slow_reader_seconds = slow_reader_seconds
        self._sending_since: float | None = None
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.create_task(self._send_all(send))
        leaving = asyncio.create_task(until_disconnected(receive))
        try:
            while not (await asyncio.wait({sending, leaving}, timeout=self._slow_reader_seconds / 4,
                                          return_when=asyncio.FIRST_COMPLETED))[0]:
                if self._is_stuck():
                    METRICS.readers_dropped.inc()
                    log.warning("a reader did not read for %g s and is dropped", self._slow_reader_seconds)
                    raise SlowReaderError  # the server closes the connection
            if sending.done():
                sending.result()  # what went wrong is for the log
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.gather(sending, leaving, return_exceptions=True)
            await self._on_end()

    def _is_stuck(self) -> bool:
        return self._sending_since is not None and \
            time.monotonic() > self._sending_since + self._slow_reader_seconds

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        async for chunk in self._body:
            # The server lets this wait once its buffer is full; a timer for each would cost as much as the chunk.
            self._sending_since = time.monotonic()
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            self._sending_since = None
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
