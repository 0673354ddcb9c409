# SPDX-License-Identifier: Apache-2.0
"""What coordinators say of the model that they serve, and whether the gateway's tokenizer is that model's."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterable, Sequence

import grpc

from outrider.v1 import types_pb2

from .coordinators import Coordinator, Coordinators, Description
from .errors import ApiError, OutOfMemoryError, beyond_memory, unavailable
from .rooms import Rooms, room_of
from .tokens import Tokens

log = logging.getLogger(__name__)

# What is known is asked for anew after so long, by the next request that needs it, which does not wait.
_RENEW_SECONDS = 2.5
# What is older says nothing of the tokenizer: who needs it waits to hear it anew.
_FRESH_SECONDS = 5.0
# /health asks more often.
_HEALTH_SECONDS = 1.0
# The readiness probes of deploy/ wait for 2 s.
_DESCRIBE_SECONDS = 1.5

NO_COORDINATOR = "no coordinator answers"
NO_VERIFIER = "no verifier is ready"
OTHER_TOKENIZER = "the tokenizer of --model is not that of the model served"
_REFUSALS = {OTHER_TOKENIZER: f"{OTHER_TOKENIZER}; the gateway's log says how they differ"}


@dataclasses.dataclass(frozen=True)
class Described:
    name: str
    longest_text: int  # that a verifier has a context and memory for, or had of late; 0: not said


class ServedModel:
    """The model behind the coordinators, described anew as time passes. Confined to one event loop."""

    def __init__(self, coordinators: Coordinators, fixed_name: str, tokens: Tokens | None) -> None:
        """`fixed_name`: what requests call the model; empty: by its own name."""
        self._coordinators = coordinators
        self._fixed_name = fixed_name
        self._tokens = tokens
        self._described: Described | None = None
        self._asked_at = self._answered_at = float("-inf")
        self._asking: asyncio.Task[str | None] | None = None
        self._mismatch: str | None = None  # between the tokenizers
        self._rooms = Rooms()
        self._surveying = asyncio.Lock()
        self._surveyed_at = float("-inf")
        self._room: int | None = None  # as the last survey found it

    async def problem(self) -> str | None:
        """Why requests are not welcome, as things are now; None: they are."""
        if time.monotonic() < self._answered_at + _HEALTH_SECONDS:
            return OTHER_TOKENIZER if self._mismatch else None
        return await self._ask()

    async def described(self) -> Described:
        """The newest that is known; ApiError 503 where nobody has ever answered."""
        if self._described is None and (problem := await self._ask()) is not None and self._described is None:
            raise unavailable(f"{problem}; try again later")
        self._refresh()
        assert self._described is not None
        return self._described

    async def name(self) -> str:
        return self._fixed_name or (await self.described()).name

    def longest_text(self) -> int | None:
        """What is known of it; a request does not wait to be refused."""
        self._refresh()
        return (self._described and self._described.longest_text) or None

    async def asked_longest_text(self) -> int | None:
        """The same, but where nobody has said anything yet, it is waited for, as long as a Describe may take."""
        with contextlib.suppress(ApiError):
            await self.described()
        return self.longest_text()

    async def explain(self, refusals: Sequence[ApiError]) -> ApiError:
        """What coordinators' refusals are to the text's reader: the last of them, as a rule.

        A text for which none of them has the memory comes back in vain, unless a verifier with more does. One that
        somebody refused for another reason may have its place there later.
        """
        lacking = [refusal for refusal in refusals if isinstance(refusal, OutOfMemoryError)]
        if len(lacking) < len(refusals):
            return refusals[-1]
        room = await self._room_of_all()
        # With more room than the text takes, a verifier has come back since.
        if room is None or room > max(refusal.num_tokens for refusal in lacking):
            return refusals[-1]
        return beyond_memory(room, refusals[-1].message)

    async def _room_of_all(self) -> int | None:
        """The longest text of the verifiers that are there; None where one that is away may have more, or has."""
        refused_at = time.monotonic()
        async with self._surveying:
            # Those that waited meanwhile share what is found, if it was asked for after they were refused.
            if self._surveyed_at < refused_at:
                begun_at = time.monotonic()
                self._room = await self._survey()
                self._surveyed_at = begun_at
        return self._room

    async def _survey(self) -> int | None:
        with contextlib.suppress(grpc.aio.AioRpcError, LookupError):
            await self._coordinators.describe(_DESCRIBE_SECONDS, lambda said: False)
        said = self._coordinators.descriptions()
        if self._described is None or len(said) < len(self._coordinators) or not all(one.verifiers for one in said):
            return None
        name = self._described.name
        verifiers = [verifier for one in said for verifier in one.verifiers if verifier.model_name == name]
        self._note_rooms(name, verifiers)
        room = max(map(room_of, verifiers), default=0)
        return room if room >= self._described.longest_text > 0 else None

    def _note_rooms(self, name: str, verifiers: Iterable[types_pb2.NodeDescription]) -> None:
        self._rooms.note(verifiers, time.monotonic())
        self._described = Described(name, self._rooms.longest(name))

    def fits(self, node: Coordinator) -> bool:
        """Whether tokens of ours are those of its model, by what it said last."""
        return node.description is not None and self._suits(node.description)

    async def check_tokenizer(self) -> None:
        """ApiError 503 where no coordinator is known to take our tokens as they are meant, by what is said now."""
        self._refresh()
        if self._is_old() or self._coordinators.choose(fits=self.fits) is None:
            problem = await self._ask()
            if self._coordinators.choose(fits=self.fits) is None:
                problem = problem or NO_COORDINATOR
                raise unavailable(f"{_REFUSALS.get(problem, problem)}; try again later")

    def _is_old(self) -> bool:
        return time.monotonic() > self._answered_at + _FRESH_SECONDS

    def _refresh(self) -> None:
        if self._asking is None and time.monotonic() > self._asked_at + _RENEW_SECONDS:
            self._begin_to_ask()

    def _begin_to_ask(self) -> asyncio.Task[str | None]:
        if self._asking is None:
            self._asking = asyncio.create_task(self._describe())
            self._asking.add_done_callback(self._end_asking)
        return self._asking

    def _end_asking(self, task: asyncio.Task[str | None]) -> None:
        self._asking = None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the model cannot be described", exc_info=error)

    async def _ask(self) -> str | None:
        # Others may wait for the same answer, and go on where this caller leaves.
        return await asyncio.shield(self._begin_to_ask())

    async def _describe(self) -> str | None:
        self._asked_at = time.monotonic()
        if self._is_old():
            self._coordinators.forget_descriptions()
        try:
            answer = await self._coordinators.describe(_DESCRIBE_SECONDS, self._suits)
        except (grpc.aio.AioRpcError, LookupError):
            return NO_COORDINATOR
        if not answer.verifiers:
            return NO_VERIFIER
        self._answered_at = time.monotonic()
        verifier = answer.verifiers[0]
        # Others may have said more, before this one or since it was asked last.
        known = [one for said in (answer, *self._coordinators.descriptions()) for one in said.verifiers]
        self._note_rooms(verifier.model_name, known)
        self._note_mismatch(self._difference(verifier))
        return OTHER_TOKENIZER if self._mismatch else None

    def _suits(self, said: Description) -> bool:
        # Of one coordinator all verifiers have the same.
        return bool(said.verifiers) and self._difference(said.verifiers[0]) is None

    def _difference(self, verifier: types_pb2.NodeDescription) -> str | None:
        if self._tokens is None:
            return None
        if verifier.vocab_size and verifier.vocab_size != self._tokens.vocab_size:
            return f"it has {self._tokens.vocab_size} tokens, and that of {verifier.model_name} {verifier.vocab_size}"
        own, theirs = self._tokens.fingerprint, verifier.tokenizer_hash
        if own and theirs and own != theirs:
            return f"its hash is {own[:12]}, and that of {verifier.model_name} {theirs[:12]}"
        return None

    def _note_mismatch(self, difference: str | None) -> None:
        if difference == self._mismatch:
            return
        self._mismatch = difference
        if difference is not None:
            log.error("%s: %s; no chats are served, and /health says 503", OTHER_TOKENIZER, difference)
        else:
            log.info("the tokenizer of --model is that of the model served")
