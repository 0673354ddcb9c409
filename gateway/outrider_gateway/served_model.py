# SPDX-License-Identifier: Apache-2.0
"""What coordinators say of the model that they serve, and whether the gateway's tokenizer is that model's."""
from __future__ import annotations

import asyncio
import dataclasses
import logging
import time

import grpc

from outrider.v1 import types_pb2

from .coordinators import Coordinators
from .errors import ApiError, unavailable
from .tokens import Tokens

log = logging.getLogger(__name__)

# What is known is asked for anew after so long, by the next request that needs it, which does not wait.
_FRESH_SECONDS = 5.0
# /health asks more often.
_HEALTH_SECONDS = 1.0
# The readiness probes of deploy/ wait for 2 s.
_DESCRIBE_SECONDS = 1.5

NO_COORDINATOR = "no coordinator answers"
NO_VERIFIER = "no verifier is ready"
OTHER_TOKENIZER = "the tokenizer of --model is not that of the model served"


@dataclasses.dataclass(frozen=True)
class Described:
    name: str
    context_length: int  # 0: not said


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

    def context_length(self) -> int | None:
        """What is known of it; a request does not wait to be refused."""
        self._refresh()
        return (self._described and self._described.context_length) or None

    def check_tokenizer(self) -> None:
        """ApiError 503 where texts would become another model's tokens."""
        if self._mismatch:
            raise ApiError(503, f"{OTHER_TOKENIZER}; the gateway's log says how they differ", code="unavailable",
                           retry_after=_FRESH_SECONDS)

    def _refresh(self) -> None:
        if self._asking is None and time.monotonic() > self._asked_at + _FRESH_SECONDS:
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
        try:
            answer = await self._coordinators.describe(_DESCRIBE_SECONDS)
        except (grpc.aio.AioRpcError, LookupError):
            return NO_COORDINATOR
        if not answer.verifiers:
            return NO_VERIFIER
        self._answered_at = time.monotonic()
        verifier = answer.verifiers[0]
        self._described = Described(verifier.model_name, verifier.context_length)
        self._note_mismatch(self._difference(verifier))
        return OTHER_TOKENIZER if self._mismatch else None

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
