# SPDX-License-Identifier: Apache-2.0
"""Runs a request's choices side by side, for a whole reply or a stream of events."""
from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import contextlib
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable

from outrider.v1 import generation_pb2 as pb

from .errors import ApiError
from .generation import Generation, Tally
from .json_text import in_parts, to_json
from .metrics import METRICS
from .padding import padding
from .replies import Json, Shape, finish_reason, round_details, text_of, usage
from .requests import Extras

log = logging.getLogger(__name__)

# Messages that wait for a slow reader; then the coordinator waits too.
_MAX_QUEUED = 16
# A reply with details of so many tokens takes a thread to write, as the loop's other streams would wait for it.
_MANY_DETAILS = 256
# One thread: the objects that a choice's details are written of take tens of megabytes.
_one_by_one = concurrent.futures.ThreadPoolExecutor(1, "large-replies")
# What details take until they are written, which is more than as JSON: of a message, and of each token and each of
# its alternatives.
_MESSAGE_BYTES, _DETAIL_BYTES = 1408, 96
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


async def whole_reply(choices: Choices, shape: Shape, num_choices: int, extras: Extras,
                      keep: Callable[[int], object]) -> list[bytes]:
    """The reply as JSON, in parts. `keep` hears how many bytes more are kept for it, and refuses what is too much."""
    count = len(choices.tallies)
    texts: list[list[str]] = [[] for _ in range(count)]
    ids: list[list[int]] = [[] for _ in range(count)]
    details: list[list[pb.GenerateResponse]] = [[] for _ in range(count)]
    reasons: list[str | None] = [None] * count
    has_details = shape.has_logprobs or extras.rounds
    num_tokens = 0
    async for index, message in choices.messages():
        texts[index].append(text_of(message))
        reasons[index] = finish_reason(message) or reasons[index]
        if extras.token_ids:
            ids[index] += [token.id for token in message.tokens]
        if has_details and message.tokens:
            num_tokens += len(message.tokens)
            keep(_MESSAGE_BYTES + _DETAIL_BYTES * sum(1 + len(token.top_logprobs) for token in message.tokens))
            details[index].append(message)

    def write(index: int) -> bytes:
        messages, details[index] = details[index], []
        tokens = [token for message in messages for token in message.tokens]
        choice = shape.choice(index, "".join(texts[index]), tokens, reasons[index])
        if extras.token_ids:
            choice["token_ids"] = ids[index]
        if extras.rounds:
            choice["outrider"] = {"rounds": [round_details(message) for message in messages]}
        return "".join(in_parts(choice)).encode() if is_long else to_json(choice).encode()

    is_long = num_tokens > _MANY_DETAILS
    loop = asyncio.get_running_loop()
    parts = [f"{_head(shape, is_chunk=False)}\"choices\":[".encode()]
    for index in range(count):
        if index:
            parts.append(b",")
        # One after the other: of all choices together only what is written is kept.
        parts.append(await loop.run_in_executor(_one_by_one, write, index) if is_long else write(index))
    rest = {"usage": usage(choices.tallies, num_choices), "outrider": {"seed": choices.tallies[0].seed}}
    parts.append(f"],{to_json(rest)[1:]}".encode())
    return parts


def _head(shape: Shape, *, is_chunk: bool) -> str:
    """An envelope's beginning, up to its choices."""
    envelope = shape.envelope([], is_chunk=is_chunk)
    del envelope["choices"]
    return f"{to_json(envelope)[:-1]},"


def error_events(error: ApiError) -> bytes:
    """The end of a stream that an error ends."""
    METRICS.streams_failed.labels(str(error.status)).inc()
    return f"data: {to_json(error.body())}\n\ndata: [DONE]\n\n".encode()


async def events(choices: Choices, shape: Shape, num_choices: int, extras: Extras) -> AsyncIterator[bytes]:
    """Server-sent events, from the first chunk to `[DONE]`; an ApiError where an error ends them."""
    # All but the choices is the same in every chunk: written once.
    head = f"data: {_head(shape, is_chunk=True)}\"choices\":["

    def event(choice: Json) -> bytes:
        tail = ""
        if extras.continuous_usage:
            tail = f",\"usage\":{to_json(usage(choices.tallies, num_choices))}"
        elif extras.usage:
            tail = ",\"usage\":null"
        return written(f"{to_json(choice)}]{tail}")

    def written(rest: str) -> bytes:
        return f"{head}{rest}{padding(rest) if extras.obfuscation else ''}}}\n\n".encode()

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
        yield written(f"],\"usage\":{to_json(usage(choices.tallies, num_choices))}")
    yield b"data: [DONE]\n\n"
