# SPDX-License-Identifier: Apache-2.0
"""Runs a request's choices side by side, for a whole reply or a stream of events."""
from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator

from outrider.v1 import generation_pb2 as pb

from .errors import ApiError
from .generation import Generation, Tally
from .json_text import in_parts, to_json
from .metrics import METRICS
from .replies import Json, Shape, finish_reason, round_details, text_of, usage
from .requests import Extras

log = logging.getLogger(__name__)

# Messages that wait for a slow reader; then the coordinator waits too.
_MAX_QUEUED = 16
# A reply with details of so many tokens takes a thread to write, as the loop's other streams would wait for it.
_MANY_DETAILS = 256
# A refusal has a status of its own, but for one that takes so long: what is silent for longer proxies take for dead.
BEGIN_SECONDS = 15.0

Numbered = tuple[int, pb.GenerateResponse]


class Choices:
    """All choices of a request: their messages in the order of their coming, each with its choice's index.

    An async context manager: at its end, whatever ended it, every session is cancelled.
    """

    def __init__(self, generations: list[Generation], arrived: float) -> None:
        """`arrived`: when the request did, by time.monotonic."""
        self._generations = generations
        self._streams = [_watched(generation, arrived) for generation in generations]
        self._queue: asyncio.Queue[tuple[int, pb.GenerateResponse | ApiError]] = asyncio.Queue(_MAX_QUEUED)
        self._tasks: list[asyncio.Task[None]] = []
        self._held: collections.deque[Numbered] = collections.deque()
        self._first: asyncio.Task[Numbered] | None = None  # that `begin` did not wait for to its end

    @property
    def tallies(self) -> list[Tally]:
        return [generation.tally for generation in self._generations]

    async def __aenter__(self) -> Choices:
        # A single one needs no task of its own: what each message costs is what readers wait for.
        if len(self._streams) > 1:
            self._tasks = [asyncio.create_task(self._run(i, one)) for i, one in enumerate(self._streams)]
        return self

    async def __aexit__(self, *_: object) -> None:
        tasks = [*self._tasks, *([self._first] if self._first is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stream in self._streams:
            await stream.aclose()

    async def begin(self, seconds: float = BEGIN_SECONDS) -> None:
        """Waits until a choice has begun, for at most so long; raises an ApiError where one is refused before."""
        self._first = asyncio.create_task(self._next())
        if (await asyncio.wait({self._first}, timeout=seconds))[0]:
            first, self._first = self._first, None
            self._held.append(first.result())

    async def messages(self) -> AsyncIterator[Numbered]:
        num_open = len(self._generations)
        while num_open:
            if self._held:
                index, message = self._held.popleft()
            elif self._first is not None:
                index, message = await self._first
                self._first = None
            else:
                index, message = await self._next()
            if message.HasField("finish"):
                num_open -= 1
            yield index, message

    async def _next(self) -> Numbered:
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


async def _watched(generation: Generation, arrived: float) -> AsyncGenerator[pb.GenerateResponse]:
    """Its messages, which are counted; whatever goes wrong is an ApiError."""
    first = last = 0.0
    num_later = 0  # tokens after those of the first message
    try:
        async with contextlib.aclosing(generation.messages()) as messages:
            async for message in messages:
                if message.tokens:
                    METRICS.tokens.inc(len(message.tokens))
                    last = time.monotonic()
                    if first:
                        num_later += len(message.tokens)
                    else:
                        first = last
                        METRICS.time_to_first_token.observe(first - arrived)
                yield message
    except ApiError:
        raise
    except Exception as error:
        log.exception("a generation failed")
        raise ApiError(500, "the gateway failed on this request; its log says why") from error
    finally:
        if num_later:
            METRICS.time_per_output_token.observe((last - first) / num_later)


async def whole_reply(choices: Choices, shape: Shape, num_choices: int, extras: Extras) -> bytes:
    """The reply as JSON."""
    count = len(choices.tallies)
    texts: list[list[str]] = [[] for _ in range(count)]
    tokens: list[list[pb.GeneratedToken]] = [[] for _ in range(count)]
    reasons: list[str | None] = [None] * count
    rounds: list[list[Json]] = [[] for _ in range(count)]
    async for index, message in choices.messages():
        texts[index].append(text_of(message))
        tokens[index] += message.tokens
        reasons[index] = finish_reason(message) or reasons[index]
        if extras.rounds and message.tokens:
            rounds[index].append(round_details(message))

    def write() -> bytes:
        made = [shape.choice(i, "".join(texts[i]), tokens[i], reasons[i]) for i in range(count)]
        for i, choice in enumerate(made):
            if extras.token_ids:
                choice["token_ids"] = [token.id for token in tokens[i]]
            if extras.rounds:
                choice["outrider"] = {"rounds": rounds[i]}
        reply = shape.envelope(made, is_chunk=False)
        reply["usage"] = usage(choices.tallies, num_choices)
        reply["outrider"] = {"seed": choices.tallies[0].seed}
        return "".join(in_parts(reply)).encode() if is_long else to_json(reply).encode()

    is_long = (shape.has_logprobs or extras.rounds) and sum(map(len, tokens)) > _MANY_DETAILS
    return await asyncio.to_thread(write) if is_long else write()


def error_events(error: ApiError) -> bytes:
    """The end of a stream that an error ends."""
    METRICS.streams_failed.labels(str(error.status)).inc()
    return f"data: {to_json(error.body())}\n\ndata: [DONE]\n\n".encode()


async def events(choices: Choices, shape: Shape, num_choices: int, extras: Extras) -> AsyncIterator[bytes]:
    """Server-sent events, from the first chunk to `[DONE]`; an ApiError where an error ends them."""
    # All but the choices is the same in every chunk: written once.
    envelope = shape.envelope([], is_chunk=True)
    del envelope["choices"]
    head = f"data: {to_json(envelope)[:-1]},\"choices\":["

    def event(choice: Json) -> bytes:
        tail = ""
        if extras.continuous_usage:
            tail = f",\"usage\":{to_json(usage(choices.tallies, num_choices))}"
        elif extras.usage:
            tail = ",\"usage\":null"
        return f"{head}{to_json(choice)}]{tail}}}\n\n".encode()

    for index in range(len(choices.tallies)):
        if (first := shape.first_chunk(index)) is not None:
            yield event(first)
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
        yield f"data: {to_json(last)}\n\n".encode()
    yield b"data: [DONE]\n\n"
