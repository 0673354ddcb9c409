# SPDX-License-Identifier: Apache-2.0
"""Chat templates as Hugging Face's `apply_chat_template` renders them, within limits.

A template is the model's own, the messages are anybody's: both run in jinja2's sandbox,
for a bounded time and to a bounded length.
"""
from __future__ import annotations

import datetime
import json
import pathlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from . import tool_calls
from .errors import ApiError

MAX_SECONDS = 2.0
MAX_CHARACTERS = 4 << 20


class NoTemplateError(Exception):
    """The model directory has none: it serves completions only."""


# The filter that loops run through; no template can write its name.
_TURNS = "turns of a loop"


class _GenerationTag(jinja2.ext.Extension):
    """`{% generation %}`, which marks the assistant's part for training; here it is a block."""

    tags = {"generation"}  # noqa: RUF012  (jinja2's own name)

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node | list[jinja2.nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Environment(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """Looks at the clock at each turn of a loop, and wherever a template calls or reads something."""

    deadline = float("inf")

    def _parse(self, source: str, name: str | None, filename: str | None) -> jinja2.nodes.Template:
        template = super()._parse(source, name, filename)
        for loop in list(template.find_all(jinja2.nodes.For)):
            loop.iter = jinja2.nodes.Filter(loop.iter, _TURNS, [], [], None, None)
        return template

    def turns(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self._tick()
            yield value

    def _tick(self) -> None:
        if time.monotonic() > self.deadline:
            raise jinja2.TemplateError(f"the template took longer than {MAX_SECONDS} s")

    def getattr(self, obj: Any, attribute: str) -> Any:
        self._tick()
        return _bounded(super().getattr(obj, attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        self._tick()
        return _bounded(super().getitem(obj, argument))

    def call(self, *args: Any, **kwargs: Any) -> Any:
        self._tick()
        # Such as the width of str.ljust.
        if any(isinstance(one, int) and abs(one) > MAX_CHARACTERS for one in (*args, *kwargs.values())):
            raise jinja2.TemplateError("a number is too large here")
        return _bounded(super().call(*args, **kwargs))

    intercepted_binops = frozenset(["+", "*", "**", "%"])

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """No product of a long text and a large number."""
        sizes = [len(side) if hasattr(side, "__len__") else abs(side) for side in (left, right)
                 if hasattr(side, "__len__") or isinstance(side, int | float)]
        if operator == "**" or (operator == "*" and any(hasattr(s, "__len__") for s in (left, right))
                                and len(sizes) == 2 and sizes[0] * sizes[1] > MAX_CHARACTERS):
            raise jinja2.TemplateError(f"{operator} grows too large here")
        return _bounded(super().call_binop(context, operator, left, right))


def _bounded(value: Any) -> Any:
    """What grows step by step is stopped once it is read again."""
    if isinstance(value, str | list | tuple) and len(value) > MAX_CHARACTERS:
        raise jinja2.TemplateError(f"a value is longer than {MAX_CHARACTERS}")
    return value


def _joined(pieces: Iterable[str]) -> str:
    taken: list[str] = []
    length = 0
    for piece in pieces:
        taken.append(piece)
        length += len(piece)
        if length > MAX_CHARACTERS:
            raise jinja2.TemplateError(f"the prompt is longer than {MAX_CHARACTERS} characters")
    return "".join(taken)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None,
            separators: tuple[str, str] | None = None, sort_keys: bool = False) -> str:
    # Not jinja2's own, which escapes for HTML.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class ChatTemplate:
    """One model's template. Thread-safe: each rendering has an environment of its own, of one compiled code."""

    def __init__(self, source: str, special_tokens: dict[str, str] | None = None,
                 now: Callable[[], datetime.datetime] = datetime.datetime.now) -> None:
        self.source = source
        self._special_tokens = special_tokens or {}
        self._now = now
        # A mistake shows at start. A large template takes tens of milliseconds, for which all streams stand still.
        self._code = self._environment().compile(source)

    def _environment(self) -> _Environment:
        environment = _Environment(trim_blocks=True, lstrip_blocks=True,
                                   extensions=[_GenerationTag, jinja2.ext.loopcontrols])
        environment.filters["tojson"] = _tojson
        environment.filters[_TURNS] = environment.turns
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = lambda form: self._now().strftime(form)
        return environment

    def render(self, messages: list[dict[str, Any]], *, add_generation_prompt: bool = True,
               variables: dict[str, Any] | None = None) -> str:
        """The prompt; an ApiError says what the template refuses. May take MAX_SECONDS.

        `messages` are as OpenAI's API has them. `variables` are the caller's own, for the template to read; they go
        before special tokens.
        """
        taken_apart = tool_calls.with_objects(messages)
        environment = self._environment()
        template = environment.template_class.from_code(environment, self._code, environment.make_globals(None))
        environment.deadline = time.monotonic() + MAX_SECONDS
        values = {"tools": None, "documents": None, **self._special_tokens, **(variables or {}),
                  "add_generation_prompt": add_generation_prompt}
        try:
            try:
                return _joined(template.generate({**values, "messages": taken_apart}))
            except TypeError as first:
                # Some templates, such as DeepSeek R1's, add the arguments of calls to texts: they want the client's
                # own text. Where that fails too, the first error says what is wrong.
                if taken_apart == messages:
                    raise
                try:
                    return _joined(template.generate({**values, "messages": messages}))
                except Exception:
                    raise first from None
        except jinja2.TemplateError as error:
            raise ApiError(400, f"messages: the model's chat template refuses them: {error}", param="messages",
                           code="chat_template_error") from error
        except Exception as error:
            # Whatever a template does with messages that it did not expect, a division by zero included.
            raise ApiError(400, f"messages: the model's chat template cannot render them: {error}",
                           param="messages", code="chat_template_error") from error


def load(directory: pathlib.Path) -> ChatTemplate:
    """The template of a model directory: chat_template.jinja, else tokenizer_config.json's.

    NoTemplateError where it has none; ValueError where what it has cannot be used.
    """
    config_path = directory / "tokenizer_config.json"
    config: dict[str, Any] = json.loads(config_path.read_text("utf-8")) if config_path.is_file() else {}
    own_file = directory / "chat_template.jinja"
    source = own_file.read_text("utf-8") if own_file.is_file() else config.get("chat_template")
    if isinstance(source, list):  # several, by name
        named = {one.get("name"): one.get("template") for one in source if isinstance(one, dict)}
        source = named.get("default")
    if source is None:
        raise NoTemplateError(f"{directory} has neither chat_template.jinja nor a chat_template in "
                              "tokenizer_config.json")
    if not isinstance(source, str):
        raise ValueError(f"{config_path}: chat_template is neither a text nor a list with a default one")
    special = {}
    for key, value in config.items():
        if key.endswith("_token"):
            # It is as transformers writes it: a text, or an AddedToken.
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                special[key] = text
    try:
        return ChatTemplate(source, special)
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(f"the chat template of {directory} is damaged: {error}") from error
