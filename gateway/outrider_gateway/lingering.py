# SPDX-License-Identifier: Apache-2.0
"""A refusal that its reader gets, although the request's body is still on its way.

A connection that is closed with unread bytes is reset, and a reset takes away what the reader has not read yet: who
sends a large body with one long write never learns why it was refused. So the end of such an answer waits for the
rest of the body, which nobody keeps (nginx's `lingering_close`).
"""
from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_MOST_SECONDS = 30.0
_SILENT_SECONDS = 5.0  # without a byte: the reader has no more to send, or has left


class Lingering:
    """ASGI middleware around the whole application."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        # Who asked whether to send it, and was refused, does not send it.
        is_expected = (b"expect", b"100-continue") not in [(k, v.lower()) for k, v in scope["headers"]]

        async def receive_body() -> Message:
            nonlocal is_expected
            message = await receive()
            is_expected = message["type"] == "http.request" and message.get("more_body", False)
            return message

        async def send_answer(message: Message) -> None:
            if message["type"] != "http.response.body" or message.get("more_body", False) or not is_expected:
                await send(message)
                return
            await send({**message, "more_body": True})
            try:
                async with asyncio.timeout(_MOST_SECONDS):
                    while is_expected:
                        await asyncio.wait_for(receive_body(), _SILENT_SECONDS)
            except TimeoutError:
                pass
            await send({"type": "http.response.body"})

        await self._app(scope, receive_body, send_answer)
