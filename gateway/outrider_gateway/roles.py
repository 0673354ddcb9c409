# SPDX-License-Identifier: Apache-2.0
"""Which roles a chat template writes. Many leave out a message whose role they do not know, without a word."""
from __future__ import annotations

import enum
import re
from typing import Any

from .chat_template import ChatTemplate
from .errors import INVALID_VALUE, ApiError

_WORD = "OutriderProbe7"
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
_PLACES: tuple[tuple[list[dict[str, Any]], list[dict[str, Any]]], ...] = (
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
        self._written = {name: self._how_written(name) for name in names}
        # Templates that write a role's name as it comes take any.
        self._others = self._how_written(_NOBODYS)

    def of_template(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The messages as the template knows them: a developer's are the system's where it writes only those."""
        if self._of("developer") is not _Written.NEVER or self._of("system") is _Written.NEVER:
            return messages
        return [{**one, "role": "system"} if one["role"] == "developer" else one for one in messages]

    def check(self, messages: list[dict[str, Any]], text: str) -> None:
        """ApiError 400 names the first of the messages, as `of_template` has them, that is not in their prompt."""
        for i, message in enumerate(messages):
            role = message["role"]
            written = self._of(role)
            if written is _Written.NEVER:
                raise _refusal(i, "role", f"the model's chat template leaves out messages of the role {role[:40]!r}")
            # A template may keep one of several system messages. What is said in turns and by functions may be
            # shortened on purpose, as thoughts are, so nothing more is asked of it.
            is_turn = role in _OPENAIS and role != "system" and role != "developer"
            if written is _Written.AS_IT_IS and not is_turn and message["content"].strip() not in text:
                raise _refusal(i, "content", f"the model's chat template leaves out this message of the role "
                                             f"{role[:40]!r}, in this place")

    def _of(self, role: str) -> _Written:
        return self._written.get(role, self._others)

    def _how_written(self, role: str) -> _Written:
        most = _Written.NEVER
        for before, behind in _PLACES:
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


def _refusal(i: int, key: str, why: str) -> ApiError:
    return ApiError(400, f"messages.{i}.{key}: {why}", param="messages", code=INVALID_VALUE)
