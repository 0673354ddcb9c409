# SPDX-License-Identifier: Apache-2.0
"""One generation: a stream of tokens that goes on elsewhere where a coordinator is lost."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import grpc

from outrider.v1 import generation_pb2 as pb
from outrider.v1 import types_pb2

from .coordinators import Coordinator, Coordinators
from .errors import ApiError, unavailable
from .metrics import METRICS
from .rpc_errors import from_rpc

log = logging.getLogger(__name__)

# A stream that has begun is looked for another coordinator for so long without a token.
RESUME_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0
# A call's deadline may come a moment before that of its request, which is on another clock.
_CLOCKS_DIFFER_BY = 1.0
# What says nothing of the request itself: somebody else may serve it. ABORTED: the stream's model is gone from a
# coordinator. FAILED_PRECONDITION: one has never had it, or no verifiers with the memory for the text. Another
# coordinator may have them, where each has verifiers of its own.
_ELSEWHERE = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED,
              grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNKNOWN, grpc.StatusCode.FAILED_PRECONDITION,
              grpc.StatusCode.ABORTED}
# What says that a coordinator serves nobody: the others come first for a while.
_BROKEN = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.CANCELLED,
           grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED,
           grpc.StatusCode.UNIMPLEMENTED}


@dataclasses.dataclass
class Tally:
    """What a generation has used so far, over all coordinators that served it."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    num_drafted: int = 0
    num_accepted: int = 0
    num_cached: int | None = None  # of the prompt's tokens; None: not known
    num_resumes: int = 0
    seed: int = 0


Metadata = Sequence[tuple[str, str]]


class Generation:
    """Iterates over a coordinator's messages: each token once, in order, whoever sends them.

    A stream that breaks is resumed on another coordinator with the request as it was, the
    seed that the first one reported, and the tokens that arrived: the reader sees no seam.
    An opening that is refused is tried on every coordinator once; the last refusal is raised,
    as an ApiError. Of a stream that nobody goes on with, what broke it is: that others lack
    its model, say, is nothing that its reader asked for.
    """

    def __init__(self, coordinators: Coordinators, request: pb.GenerateRequest, *,
                 seed: int | None = None, deadline: float | None = None,
                 may_begin_at: Callable[[Coordinator], bool] | None = None,
                 explain: Callable[[Sequence[ApiError]], Awaitable[ApiError]] | None = None) -> None:
        """`seed`: in place of the request's. `deadline`: by time.monotonic.

        `may_begin_at`: whether a coordinator is one for this prompt.
        `explain`: what refusals of an opening, in their order, are to its reader.
        """
        self._coordinators = coordinators
        self._request = pb.GenerateRequest()
        self._request.CopyFrom(request)
        if seed is not None:
            self._request.seed = seed
        self._metadata: Metadata = ()
        self._request_id = "-"
        self._deadline = deadline
        self._may_begin_at = may_begin_at
        self._explain = explain
        self._tokens: list[int] = list(request.delivered.ids)
        self._has_begun = False
        self._refusals: list[ApiError] = []  # of its opening
        self._model = types_pb2.ModelIdentity()  # that a resume has to name again
        self._is_k_auto = False  # likewise
        self._cache_salt = ""  # by which a resume finds what nodes still have of the stream
        self.tally = Tally()

    @property
    def num_bytes(self) -> int:
        """What is kept for as long as it runs, its prompt above all."""
        return int(self._request.ByteSize())

    def set_caller(self, metadata: Metadata, cache_salt: str) -> None:
        """`metadata` goes with every call, such as the request's name in logs."""
        self._metadata = tuple(metadata)
        self._request_id = dict(metadata).get("x-request-id", "-")
        self._request.cache_salt = cache_salt

    async def messages(self) -> AsyncGenerator[pb.GenerateResponse]:
        """The messages, their tokens trimmed to those that are new; the last one has `finish`."""
        tried: set[str] = set()
        pause = _FIRST_PAUSE
        give_up = time.monotonic() + RESUME_SECONDS
        broke: grpc.aio.AioRpcError | None = None  # what the stream waits to be resumed after
        while True:
            node = self._choose(tried)
            if node is None and self._has_begun and tried:
                # All of them have failed just now: again, after a while.
                tried.clear()
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
                continue
            if node is None:
                raise unavailable("no coordinator answers; try again later")
            before = len(self._tokens), self._has_begun
            try:
                # Closed here and now, where a reader leaves: not when memory is next cleaned up.
                async with contextlib.aclosing(self._call(node)) as call:
                    async for message in call:
                        yield message
                        if message.HasField("finish"):
                            return
                raise ApiError(500, "the stream ended without its last message")
            except grpc.aio.AioRpcError as error:
                if (len(self._tokens), self._has_begun) != before:
                    give_up = time.monotonic() + RESUME_SECONDS
                    pause = _FIRST_PAUSE
                    tried.clear()
                    broke = error
                tried.add(node.address)
                await self._after_failure(node, error, broke or error, is_last=self._is_last(tried, give_up, error))

    def _is_last(self, tried: set[str], give_up: float, error: grpc.aio.AioRpcError) -> bool:
        if self._is_over(error):
            return True
        if self._has_begun:
            return time.monotonic() >= give_up
        return self._choose(tried) is None

    def _choose(self, tried: set[str]) -> Coordinator | None:
        # One that has begun names its model, which only coordinators of that model go on with.
        return self._coordinators.choose(tried, None if self._has_begun else self._may_begin_at)

    def _is_over(self, error: grpc.aio.AioRpcError) -> bool:
        """Whether the error is that the request's own time has ended."""
        if self._deadline is None:
            return False
        grace = _CLOCKS_DIFFER_BY if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED else 0.0
        return time.monotonic() >= self._deadline - grace

    async def _after_failure(self, node: Coordinator, error: grpc.aio.AioRpcError, broke: grpc.aio.AioRpcError, *,
                             is_last: bool) -> None:
        """Raises where the request itself is at fault, or where nobody else is left: then what broke the stream."""
        if error.code() in _BROKEN and not self._is_over(error):
            node.failed()
        if error.code() not in _ELSEWHERE or is_last:
            is_own = error.code() not in _ELSEWHERE or self._is_over(error)
            refusal = from_rpc(error if is_own else broke)
            if self._explain is not None and not self._has_begun:
                refusal = await self._explain([*self._refusals, refusal])
            if refusal.status >= 500:
                log.warning("a request failed at %s: %s: %s request_id=%s", node.address, error.code().name,
                            error.details(), self._request_id)
            raise refusal from error
        if not self._has_begun:
            self._refusals.append(from_rpc(error))
        else:
            self.tally.num_resumes += 1
            METRICS.resumes.inc()
            log.warning("a stream broke after %d tokens (%s) and is resumed request_id=%s", len(self._tokens),
                        error.code().name, self._request_id)

    async def _call(self, node: Coordinator) -> AsyncGenerator[pb.GenerateResponse]:
        timeout = None if self._deadline is None else max(0.001, self._deadline - time.monotonic())
        if self._has_begun:
            self._request.delivered.ids[:] = self._tokens
            self._request.seed = self.tally.seed
            self._request.model.CopyFrom(self._model)
            self._request.cache_salt = self._cache_salt or self._request.cache_salt
            if self._is_k_auto:
                self._request.auto_num_speculative_tokens = True
        with node.stream():
            call = node.stub.Generate(self._request, timeout=timeout, metadata=self._metadata)
            try:
                async for message in call:
                    yield self._take(message)
            finally:
                # A reader who leaves ends the session at once.
                call.cancel()

    def _take(self, message: pb.GenerateResponse) -> pb.GenerateResponse:
        if message.HasField("start"):
            self.tally.seed = message.start.seed
            self.tally.prompt_tokens = message.start.prompt_length
            self._model.CopyFrom(message.start.model)
            self._is_k_auto = message.start.auto_num_speculative_tokens
            self._cache_salt = message.start.cache_salt or self._cache_salt
            # What a resume finds cached is what its stream has left itself.
            if not self._has_begun and message.start.HasField("cached_prompt_tokens"):
                self.tally.num_cached = message.start.cached_prompt_tokens
            self._has_begun = True
        next_index = len(self._tokens)
        if message.tokens:
            if message.first_index > next_index:
                raise ApiError(500, f"tokens are missing: expected index {next_index}, got {message.first_index}")
            del message.tokens[:next_index - message.first_index]
            self._tokens += [token.id for token in message.tokens]
            self.tally.completion_tokens = len(self._tokens)
            # Those that are in the continuation: a round's own count has what it accepted after the end, too.
            self.tally.num_accepted += sum(token.origin == pb.TOKEN_ORIGIN_DRAFT for token in message.tokens)
        if message.HasField("round"):
            self.tally.num_drafted += message.round.num_drafted
        return message
