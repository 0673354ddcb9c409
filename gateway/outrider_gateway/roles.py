# SPDX-License-Identifier: Apache-2.0
"""Which roles a chat template writes. Many leave out a message whose role they do not know, without a word."""
from __future__ import annotations

import enum
import re
from collections.abc import Callable
from typing import Any

from .chat_template import ChatTemplate
from .errors import INVALID_VALUE, ApiError

Places = tuple[tuple[list[dict[str, Any]], list[dict[str, Any]]], ...]

_WORD = "OutriderProbe7"
_PROBES = re.compile(rf"{_WORD}N([0-9]+)\.")
# A template that writes this as it is writes other contents so, but perhaps for blanks at their ends.
_CONTENT = f'"{_WORD}"\n\n  <b>{{}}\\ é'
_OPENAIS = ("developer", "system", "user", "assistant", "tool", "function")
_NOBODYS = "OutriderRole7"
# Texts of a template that may be roles.
_QUOTED = re.compile(r"""['"]([A-Za-z][\w-]{0,31})['"]""")
_QUESTION = {"role": "user", "content": "a"}
_CALL = {"id": "abcdefghi", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_CALLING = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
# What comes before a message, and what behind it.
_PLACES: Places = (
    ([], [_QUESTION]), ([], []), ([_QUESTION], []), ([_QUESTION], [_QUESTION]), ([_QUESTION, _CALLING], []),
    ([_QUESTION, {"role": "assistant", "content": "b"}], [_QUESTION]))


class _Written(enum.Enum):
    NEVER = 0
    IN_PART = 1  # or in another form, such as JSON
    AS_IT_IS = 2


class Roles:
    """What a template does with messages of each role, as it was found out by rendering some. Immutable."""

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template
        names = {*_OPENAIS, *_QUOTED.findall(template.source)}
        self._written = {name: self._how_written(name, _PLACES) for name in names}
        # Templates that write a role's name as it comes take any.
        self._others = self._how_written(_NOBODYS, _PLACES)
        developer, system = (self._how_written(role, _PLACES[:1]) for role in ("developer", "system"))
        self._is_developer_system = developer is _Written.NEVER and system is not _Written.NEVER

    def render(self, messages: list[dict[str, Any]], *, add_generation_prompt: bool = True,
               variables: dict[str, Any] | None = None) -> str:
        """The prompt; a developer's messages are the system's where the template begins a chat with those alone.

        ApiError 400 where the template refuses the messages, or leaves one out: it names the first of those.
        """
        messages = self._of_template(messages)

        def prompt(messages: list[dict[str, Any]]) -> str:
            return self._template.render(messages, add_generation_prompt=add_generation_prompt, variables=variables)
        text = prompt(messages)
        if doubtful := self._doubtful(messages, text):
            self._check(messages, doubtful, prompt)
        return text

    def _of_template(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if not self._is_developer_system:
            return messages
        return [{**one, "role": "system"} if one["role"] == "developer" else one for one in messages]

    def _doubtful(self, messages: list[dict[str, Any]], text: str) -> list[int]:
        """Places of messages that may not be in the text: with the first, all behind it, so that it is read once."""
        checked = [i for i, message in enumerate(messages) if self._is_checked(message["role"])]
        at = 0
        for num_seen, i in enumerate(checked):
            if self._of(messages[i]["role"]) is not _Written.NEVER:
                at = text.find(messages[i]["content"].strip(), at)
            if self._of(messages[i]["role"]) is _Written.NEVER or at < 0:
                return checked[num_seen:]
        return []

    def _is_checked(self, role: str) -> bool:
        # A template may keep one of several system messages. What is said in turns and by functions may be
        # shortened on purpose, as thoughts are, so nothing more is asked of it.
        is_turn = role in _OPENAIS and role not in ("system", "developer")
        written = self._of(role)
        return written is _Written.NEVER or (written is _Written.AS_IT_IS and not is_turn)

    def _check(self, messages: list[dict[str, Any]], doubtful: list[int],
               prompt: Callable[[list[dict[str, Any]]], str]) -> None:
        """Looks whether other words in these places would be in the prompt.

        Where they would, the template has shortened these: some take a switch such as `/no_think` out of the system's
        message. It may also write a role with variables of the caller's alone.
        """
        probes = {i: {**messages[i], "content": f"{_WORD}N{i}."} for i in doubtful}
        try:
            text = prompt([probes.get(i, message) for i, message in enumerate(messages)])
        except ApiError:
            return  # it looks at what they say
        seen = set(map(int, _PROBES.findall(text)))
        for i in doubtful:
            if i not in seen:
                raise _refusal(i, self._of(messages[i]["role"]), messages[i]["role"][:40])

    def _of(self, role: str) -> _Written:
        return self._written.get(role, self._others)

    def _how_written(self, role: str, places: Places) -> _Written:
        most = _Written.NEVER
        for before, behind in places:
            message = {"role": role, "content": _CONTENT, "tool_call_id": _CALL["id"], "name": "f"}
            try:
                text = self._template.render([*before, message, *behind])
            except ApiError:
                continue  # such as that roles have to alternate
            if _CONTENT in text:
                return _Written.AS_IT_IS
            if _WORD in text:
                most = _Written.IN_PART
        return most


def _refusal(i: int, written: _Written, role: str) -> ApiError:
    key, why = ("role", f"messages of the role {role!r}") if written is _Written.NEVER else \
        ("content", f"this message of the role {role!r}, in this place")
    return ApiError(400, f"messages.{i}.{key}: the model's chat template leaves out {why}", param="messages",
                    code=INVALID_VALUE)
