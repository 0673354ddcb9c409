# SPDX-License-Identifier: Apache-2.0
"""What readers get: whole replies and chunks of a stream, in OpenAI's shapes."""
from __future__ import annotations

import dataclasses
import secrets
import time
from typing import Any, Protocol

from outrider.v1 import generation_pb2 as pb

from .generation import Tally
from .tokens import Tokens

Json = dict[str, Any]

_FINISH = {pb.FINISH_REASON_EOS: "stop", pb.FINISH_REASON_STOP: "stop", pb.FINISH_REASON_LENGTH: "length"}
_ORIGINS = {pb.TOKEN_ORIGIN_DRAFT: "draft", pb.TOKEN_ORIGIN_REPLACEMENT: "replacement",
            pb.TOKEN_ORIGIN_BONUS: "bonus"}


def finish_reason(message: pb.GenerateResponse) -> str | None:
    return _FINISH.get(message.finish.reason) if message.HasField("finish") else None


def text_of(message: pb.GenerateResponse) -> str:
    return "".join(token.text for token in message.tokens) + message.finish.trailing_text


def usage(tallies: list[Tally], num_choices: int) -> Json:
    """The usage of all choices; a prompt counts once, however many choices it has."""
    prompt = sum(tally.prompt_tokens for tally in tallies[::num_choices])
    completion = sum(tally.completion_tokens for tally in tallies)
    accepted = sum(tally.num_accepted for tally in tallies)
    drafted = sum(tally.num_drafted for tally in tallies)
    cached = [tally.num_cached for tally in tallies[::num_choices]]
    # Older coordinators do not say it.
    known = None if None in cached else {"cached_tokens": sum(filter(None, cached))}
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion,
            "prompt_tokens_details": known,
            "completion_tokens_details": {"accepted_prediction_tokens": accepted,
                                          "rejected_prediction_tokens": drafted - accepted}}


def round_details(message: pb.GenerateResponse) -> Json:
    """Ours, where a request asks for `rounds`: where tokens come from, and what the round did."""
    looked_up = message.round.num_looked_up > 0
    tokens = [{"id": token.id, "text": token.text,
               "origin": "lookup" if looked_up and token.origin == pb.TOKEN_ORIGIN_DRAFT
               else _ORIGINS.get(token.origin, "bonus")} for token in message.tokens]
    details: Json = {"tokens": tokens}
    if message.HasField("round"):
        stats = message.round
        details["round"] = {
            "num_drafted": stats.num_drafted, "num_accepted": stats.num_accepted, "num_more": stats.num_more,
            "num_looked_up": stats.num_looked_up, "num_drafted_ahead": stats.num_drafted_ahead,
            "ahead": {pb.AHEAD_OUTCOME_HIT: "hit", pb.AHEAD_OUTCOME_MISS: "miss"}.get(stats.ahead_outcome, "none"),
            **{name: getattr(stats, name).ToNanoseconds() / 1e6 for name in (
                "draft_time", "verify_time", "draft_compute_time", "verify_compute_time", "round_time")}}
    return details


class Shape(Protocol):
    """How one endpoint writes a choice."""

    has_logprobs: bool

    def choice(self, index: int, text: str, tokens: list[pb.GeneratedToken], reason: str | None) -> Json: ...
    def first_chunk(self, index: int) -> Json | None: ...
    def chunk(self, index: int, text: str, tokens: list[pb.GeneratedToken], reason: str | None) -> Json: ...
    def envelope(self, choices: list[Json], *, is_chunk: bool) -> Json: ...


@dataclasses.dataclass
class _Envelope:
    prefix: str
    whole: str
    part: str
    model: str
    id: str = ""
    created: int = 0

    def __post_init__(self) -> None:
        self.id = f"{self.prefix}-{secrets.token_hex(16)}"
        self.created = int(time.time())

    def __call__(self, choices: list[Json], *, is_chunk: bool) -> Json:
        return {"id": self.id, "object": self.part if is_chunk else self.whole, "created": self.created,
                "model": self.model, "choices": choices}


class CompletionShape:
    def __init__(self, model: str, tokens: Tokens | None, has_logprobs: bool, echoes: list[str] | None) -> None:
        """`echoes`: what stands before each choice's text, where the request asks for it."""
        self._envelope = _Envelope("cmpl", "text_completion", "text_completion", model)
        self._tokens = tokens
        self.has_logprobs = has_logprobs
        self._echoes = echoes
        self._offsets: dict[int, int] = {}  # by choice: characters shown so far

    def choice(self, index: int, text: str, tokens: list[pb.GeneratedToken], reason: str | None) -> Json:
        echo = self._echoes[index] if self._echoes else ""
        self._offsets[index] = len(echo)
        return {"index": index, "text": echo + text, "logprobs": self._logprobs(index, tokens),
                "finish_reason": reason}

    def first_chunk(self, index: int) -> Json | None:
        if not self._echoes:
            return None
        self._offsets[index] = len(self._echoes[index])
        return {"index": index, "text": self._echoes[index], "logprobs": None, "finish_reason": None}

    def chunk(self, index: int, text: str, tokens: list[pb.GeneratedToken], reason: str | None) -> Json:
        return {"index": index, "text": text, "logprobs": self._logprobs(index, tokens) if tokens else None,
                "finish_reason": reason}

    def _logprobs(self, index: int, tokens: list[pb.GeneratedToken]) -> Json | None:
        if not self.has_logprobs or self._tokens is None:
            return None
        offsets = []
        for token in tokens:
            offsets.append(self._offsets.setdefault(index, 0))
            self._offsets[index] += len(token.text)
        return {"tokens": [self._tokens.name(token.id) for token in tokens],
                "token_logprobs": [token.logprob for token in tokens],
                "top_logprobs": [self._alternatives(token) for token in tokens], "text_offset": offsets}

    def _alternatives(self, token: pb.GeneratedToken) -> Json:
        assert self._tokens is not None
        named = {self._tokens.name(one.id): one.logprob for one in token.top_logprobs}
        # The token itself is always among OpenAI's, which may be one more than were asked for.
        return named if token.id in (one.id for one in token.top_logprobs) else \
            {**named, self._tokens.name(token.id): token.logprob}

    def envelope(self, choices: list[Json], *, is_chunk: bool) -> Json:
        return self._envelope(choices, is_chunk=is_chunk)


class ChatShape:
    def __init__(self, model: str, tokens: Tokens, has_logprobs: bool) -> None:
        self._envelope = _Envelope("chatcmpl", "chat.completion", "chat.completion.chunk", model)
        self._tokens = tokens
        self.has_logprobs = has_logprobs

    def choice(self, index: int, text: str, tokens: list[pb.GeneratedToken], reason: str | None) -> Json:
        return {"index": index, "message": {"role": "assistant", "content": text, "refusal": None},
                "logprobs": self._logprobs(tokens), "finish_reason": reason}

    def first_chunk(self, index: int) -> Json | None:
        return {"index": index, "delta": {"role": "assistant", "content": ""}, "logprobs": None,
                "finish_reason": None}

    def chunk(self, index: int, text: str, tokens: list[pb.GeneratedToken], reason: str | None) -> Json:
        return {"index": index, "delta": {"content": text} if text else {},
                "logprobs": self._logprobs(tokens) if tokens else None, "finish_reason": reason}

    def _logprobs(self, tokens: list[pb.GeneratedToken]) -> Json | None:
        if not self.has_logprobs:
            return None
        return {"content": [{**self._one(token.id, token.logprob),
                             "top_logprobs": [self._one(one.id, one.logprob) for one in token.top_logprobs]}
                            for token in tokens], "refusal": None}

    def _one(self, token: int, logprob: float) -> Json:
        name, data = self._tokens.shown(token)
        return {"token": name, "logprob": logprob, "bytes": list(data)}

    def envelope(self, choices: list[Json], *, is_chunk: bool) -> Json:
        return self._envelope(choices, is_chunk=is_chunk)
