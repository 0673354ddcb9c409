# SPDX-License-Identifier: Apache-2.0
"""What clients may ask: OpenAI's parameters, vLLM's extensions, and ours under `outrider`.

Unknown parameters, and known ones that are not served, are refused by name: nothing is
silently ignored.
"""
from __future__ import annotations

import contextlib
import dataclasses
import gc
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, TypeVar

import pydantic
from pydantic import BaseModel, ConfigDict, Field

from . import anyway, structure, tool_calls
from .parameters import MAX_INT32, MAX_UINT32, MinP, RepetitionPenalty, Temperature, TopK, TopP
from .request_errors import refusal_of

MAX_CHOICES = 16
MAX_PROMPTS = 64
# What is longer takes the event loop's time, and no chat that a model has a context for.
MAX_MESSAGES = 4096
MAX_BIASES = 1024  # as many as coordinators take
Token = Annotated[int, Field(ge=0, le=MAX_INT32)]
# Long lists stop at their first mistake: each one found costs a hundred times its bytes.
TokenIds = Annotated[list[Token], Field(min_length=1, fail_fast=True)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    @pydantic.model_validator(mode="before")
    @classmethod
    def _leave_out_nulls(cls, asked: Any) -> Any:
        """Does as OpenAI's API does: a parameter that is null is one that is left out, whatever its name."""
        if not isinstance(asked, dict) or None not in asked.values():
            return asked
        required = {name for name, field in cls.model_fields.items() if field.is_required()}
        return {name: value for name, value in asked.items() if value is not None or name in required}


class StreamOptions(Strict):
    include_usage: bool = False
    continuous_usage_stats: bool = False  # vLLM's: in every chunk, so far
    include_obfuscation: bool = False


@dataclasses.dataclass(frozen=True)
class Extras:
    """What a reply has besides OpenAI's fields."""

    rounds: bool = False
    token_ids: bool = False
    usage: bool = False  # at the end of a stream, where it has to be asked for
    continuous_usage: bool = False  # and in each chunk before
    obfuscation: bool = False  # events of a stream are padded


class OutriderOptions(Strict):
    """The options of speculative decoding; the output's law is the same whatever they say."""

    num_speculative_tokens: Literal["auto"] | Annotated[int, Field(ge=0, le=MAX_UINT32)] | None = None
    acceptance_rule: Literal["rejection", "greedy", "coupled", "block"] | None = None
    schedule: Literal["sequential", "ahead", "predraft", "auto"] | None = None
    prompt_lookup: bool | None = None
    min_draft_probability: float | None = Field(None, ge=0, lt=1)
    # Adds to each chunk where its tokens come from, and what the round did.
    rounds: bool = False


class SamplingRequest(Strict):
    """What both endpoints share."""

    COUNTED: ClassVar[bytes] = b"[{,"  # the characters that structure.num_pieces counts

    model: str
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int = Field(1, ge=1, le=MAX_CHOICES)
    max_tokens: int | None = Field(None, ge=1, le=MAX_UINT32)
    temperature: Temperature | None = None
    top_p: TopP | None = None
    seed: int | None = None
    stop: str | Annotated[list[str], Field(fail_fast=True)] | None = None
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: Annotated[dict[str, float], Field(max_length=MAX_BIASES)] | None = None
    # What is for the caller's own records, or a hint that changes no answer.
    user: str | None = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    # vLLM's.
    top_k: TopK | None = None
    min_p: MinP | None = None
    repetition_penalty: RepetitionPenalty | None = None
    ignore_eos: bool = False
    return_token_ids: bool = False
    stop_token_ids: list[Token] = Field(default_factory=list, max_length=64)  # as many as coordinators take
    cache_salt: str | None = Field(None, min_length=1, max_length=1024)
    # Ours.
    outrider: OutriderOptions = OutriderOptions()

    @pydantic.field_validator("stop")
    @classmethod
    def _check_stop(cls, stop: str | list[str] | None) -> str | list[str] | None:
        if isinstance(stop, list) and len(stop) > 16:
            raise ValueError(f"at most 16 stop strings, not {len(stop)}")
        return stop

    @pydantic.field_validator("logit_bias")
    @classmethod
    def _check_bias(cls, bias: dict[str, float] | None) -> dict[str, float] | None:
        for token, value in (bias or {}).items():
            if not token.isdecimal() or len(token) > 10:
                raise ValueError(f"keys are token ids, not {token[:20]!r}")
            if not -100 <= value <= 100:
                raise ValueError(f"values are between -100 and 100, not {value}")
        return bias

    @pydantic.model_validator(mode="before")
    @classmethod
    def _leave_out_what_happens_anyway(cls, asked: Any) -> Any:
        return anyway.left_out(asked) if isinstance(asked, dict) else asked

    @pydantic.model_validator(mode="after")
    def _check_together(self) -> SamplingRequest:
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options: needs stream to be true")
        return self

    def stop_strings(self) -> list[str]:
        if self.stop is None:
            return []
        return [self.stop] if isinstance(self.stop, str) else self.stop

    def folded_bytes(self) -> int:
        """What texts of JSON in it take once they are taken apart, too; ApiError 400 where nobody should try."""
        return 0

    def extras(self) -> Extras:
        options = self.stream_options or StreamOptions()
        return Extras(rounds=self.outrider.rounds, token_ids=self.return_token_ids, usage=options.include_usage,
                      continuous_usage=options.include_usage and options.continuous_usage_stats,
                      obfuscation=options.include_obfuscation)


class CompletionRequest(SamplingRequest):
    COUNTED: ClassVar[bytes] = b"[{:"  # and no commas: a prompt may be a million token ids

    prompt: str | TokenIds | Annotated[list[str], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)] | \
        Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)]
    echo: bool = False
    logprobs: int | None = Field(None, ge=0, le=20)
    best_of: int | None = None

    def prompts(self) -> list[str | list[int]]:
        if isinstance(self.prompt, str):
            return [self.prompt]
        if isinstance(self.prompt[0], int):
            return [self.prompt]
        return list(self.prompt)

    @pydantic.model_validator(mode="after")
    def _check_completion(self) -> CompletionRequest:
        if self.best_of is not None and self.best_of != self.n:
            raise ValueError(f"best_of: only the value of n, {self.n}, is served")
        if self.echo and self.logprobs is not None:
            raise ValueError("echo: the prompt's log-probabilities are not served; leave out echo or logprobs")
        if self.n * len(self.prompts()) > MAX_PROMPTS:
            raise ValueError(f"n: at most {MAX_PROMPTS} choices for all prompts together, not "
                             f"{self.n * len(self.prompts())}")
        if self.max_tokens is None:
            self.max_tokens = 16  # OpenAI's default of this endpoint
        return self

    def num_logprobs(self) -> int | None:
        return self.logprobs


class TextPart(Strict):
    type: Literal["text"]
    text: str

    @pydantic.model_validator(mode="before")
    @classmethod
    def _name_other_kinds(cls, part: Any) -> Any:
        kind = part.get("type") if isinstance(part, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise ValueError(f"parts of the type {kind[:40]!r} are not served, only text is")
        return part


class Message(BaseModel):
    """What the template wants: other keys (name, tool_calls, ...) are passed on to it, where they have a value."""

    model_config = ConfigDict(extra="allow")

    role: str = Field(min_length=1)
    content: str | Annotated[list[TextPart], Field(max_length=MAX_MESSAGES, fail_fast=True)] | None = None

    @pydantic.model_validator(mode="after")
    def _check_content(self) -> Message:
        if self.content is None and self.role != "assistant":
            raise ValueError(f"a message of the role {self.role[:40]!r} needs content")
        return self

    def calls(self) -> Any:
        return (self.model_extra or {}).get("tool_calls")

    def for_template(self) -> dict[str, Any]:
        content = self.content or ""  # nothing of an assistant's call, say; templates would write "None"
        if isinstance(content, list):
            content = "\n".join(part.text for part in content)  # as vLLM joins them
        # Not by model_dump, which copies each value of the other keys and takes longer than the parser.
        others = {name: value for name, value in (self.model_extra or {}).items() if not _is_nothing(name, value)}
        return {"role": self.role, "content": content, **others}


def _is_nothing(name: str, value: Any) -> bool:
    """Clients send an answer back as their library writes it, with keys that have no value; templates such as Llama
    3.1's ask only whether the key is there."""
    return value is None or (name == "tool_calls" and value == [])


class ResponseFormat(Strict):
    type: Literal["text"]

    @pydantic.model_validator(mode="before")
    @classmethod
    def _name_other_kinds(cls, asked: Any) -> Any:
        kind = asked.get("type") if isinstance(asked, dict) else None
        if isinstance(kind, str) and kind != "text":
            raise ValueError(f"{kind[:40]!r} needs constrained decoding, which is not served; only 'text' is")
        return asked


class ChatRequest(SamplingRequest):
    messages: list[Message] = Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)
    max_completion_tokens: int | None = Field(None, ge=1, le=MAX_UINT32)
    logprobs: bool = False
    top_logprobs: int | None = Field(None, ge=0, le=20)
    response_format: ResponseFormat | None = None
    # vLLM's, and the template's.
    add_generation_prompt: bool = True
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @pydantic.field_validator("chat_template_kwargs")
    @classmethod
    def _check_kwargs(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        for name in ("messages", "add_generation_prompt"):
            if name in kwargs:
                raise ValueError(f"{name} has a parameter of its own")
        return kwargs

    @pydantic.model_validator(mode="after")
    def _check_chat(self) -> ChatRequest:
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs: needs logprobs to be true")
        if None not in (self.max_tokens, self.max_completion_tokens) and \
                self.max_tokens != self.max_completion_tokens:
            raise ValueError("max_tokens: say it once; max_completion_tokens has another value")
        if self.max_completion_tokens is not None:
            self.max_tokens = self.max_completion_tokens
        return self

    def num_logprobs(self) -> int | None:
        return (self.top_logprobs or 0) if self.logprobs else None

    def folded_bytes(self) -> int:
        # The first mistake in one of them ends the reading of all: no count behind it matters.
        texts = (text.encode() for message in self.messages for text in tool_calls.texts(message.calls()))
        return structure.PIECE_BYTES * structure.num_pieces(b" ".join(texts), self.COUNTED)

    def take_chat(self) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """The messages and the variables for the template; the request has neither any more.

        A prompt may wait long for others, and what it was made of would wait with the request.
        """
        chat = [message.for_template() for message in self.messages], self.chat_template_kwargs
        self.messages, self.chat_template_kwargs = [], {}
        return chat


Request = TypeVar("Request", bound=SamplingRequest)
_LARGE = 1 << 16


def parsed_bytes(kind: type[SamplingRequest], body: bytes | bytearray, longest_text: int | None) -> int:
    """What a body takes beside itself once it is taken apart; ApiError 400 where nobody should try.

    `longest_text`: of all verifiers, where it is known.
    """
    return structure.PIECE_BYTES * structure.num_pieces(body, kind.COUNTED, longest_text)


def parse(kind: type[Request], body: bytes | bytearray) -> Request:
    """The request, or an ApiError that names the parameter."""
    try:
        # A large body's own objects would set off one collection after the other, three times its own time; JSON has
        # no cycles to collect.
        with _no_collection() if len(body) > _LARGE else contextlib.nullcontext():
            return kind.model_validate_json(body)
    except pydantic.ValidationError as error:
        raise refusal_of(error) from None


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
