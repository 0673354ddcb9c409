# SPDX-License-Identifier: Apache-2.0
"""Chats as token ids: the template's text, then the tokenizer's tokens, away from the event loop."""
from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any

from .chat_template import ChatTemplate
from .errors import ApiError, context_exceeded
from .roles import Roles
from .tokens import Tokens, TooManyTokensError

# Characters whose tokens take a few megabytes while they are made.
_LARGE = 1 << 16


class ChatPrompts:
    """Makes prompts of chats. Used by one event loop."""

    def __init__(self, template: ChatTemplate, tokens: Tokens) -> None:
        self._roles = Roles(template)
        self._tokens = tokens
        # Large texts wait for each other: each takes hundreds of megabytes, and a core for a second. It is a thread
        # and no semaphore, since a text whose reader has left is taken apart to its end all the same.
        self._one_by_one = concurrent.futures.ThreadPoolExecutor(1, "large-prompts")

    async def ids(self, messages: list[dict[str, Any]], variables: dict[str, Any], *, add_generation_prompt: bool,
                  longest_text: int) -> list[int]:
        """ApiError 400 where the template refuses the messages or leaves one out, or no verifier has room to answer
        them."""
        most = longest_text or 1 << 31

        def render(messages: list[dict[str, Any]], variables: dict[str, Any]) -> tuple[str, list[int]]:
            text = self._roles.render(messages, add_generation_prompt=add_generation_prompt, variables=variables)
            return text, self._tokens.encode(text) if len(text) <= _LARGE else []

        text, ids = await asyncio.to_thread(render, messages, variables)
        del messages, variables  # which may be large, and would wait with the text
        if len(text) > _LARGE:
            loop = asyncio.get_running_loop()
            try:
                ids = await loop.run_in_executor(self._one_by_one, self._tokens.encode_within, text, most)
            except TooManyTokensError as error:
                raise context_exceeded(longest_text, error.num_tokens, is_whole=False, param="messages") from None
        if not ids:
            raise ApiError(400, "messages: the chat template made an empty prompt of them", param="messages",
                           code="chat_template_error")
        if len(ids) >= most:
            raise context_exceeded(longest_text, len(ids), param="messages")
        return ids
