# SPDX-License-Identifier: Apache-2.0
"""What is said of every request, whoever answers it: its id, a line in the log, metrics."""
from __future__ import annotations

import asyncio
import dataclasses
import logging
import re
import secrets
import time
from collections.abc import Callable

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import ApiError
from .generation import Tally
from .metrics import METRICS

log = logging.getLogger(__name__)

_REQUEST_ID = re.compile(r"[-_.A-Za-z0-9]{1,64}")
# Probes and scrapes come all the time.
_UNLOGGED = ("/health", "/live", "/metrics")


@dataclasses.dataclass
class Observation:
    """What is known of one request so far; whoever serves it fills it in."""

    request_id: str
    arrived: float
    key: str = "-"
    tallies: list[Tally] = dataclasses.field(default_factory=list)
    num_choices: int = 1  # of each prompt
    error: ApiError | None = None  # that ended a stream whose status was 200

    @property
    def prompt_tokens(self) -> int:
        """A prompt counts once, however many choices it has."""
        return sum(tally.prompt_tokens for tally in self.tallies[::self.num_choices])

    @property
    def completion_tokens(self) -> int:
        return sum(tally.completion_tokens for tally in self.tallies)


def observation_of(request: Request) -> Observation:
    found: Observation = request.state.observation
    return found


class Observed:
    """ASGI middleware around all others: what they answer has an id, and is counted and logged."""

    def __init__(self, app: ASGIApp, is_draining: Callable[[], bool]) -> None:
        self._app = app
        self._is_draining = is_draining

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        observation = Observation(_request_id(scope), time.monotonic())
        scope.setdefault("state", {})["observation"] = observation
        status: int | None = None

        async def observed_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", []), (b"x-request-id", observation.request_id.encode())]
                if self._is_draining():
                    # A connection that is kept brings its next request to a gateway that will not serve it.
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
                METRICS.requests.labels(_route(scope), str(status)).inc()
            await send(message)

        try:
            await self._app(scope, receive, observed_send)
        except asyncio.CancelledError:
            # The server gives up what has not ended with the process, and would log where it was.
            if not self._is_draining():
                raise
        finally:
            _note_end(scope, observation, status)


def _note_end(scope: Scope, observation: Observation, status: int | None) -> None:
    seconds = time.monotonic() - observation.arrived
    METRICS.request_seconds.labels(_route(scope)).observe(seconds)
    METRICS.prompt_tokens.inc(observation.prompt_tokens)
    if scope["path"] in _UNLOGGED:
        return
    error = "" if observation.error is None else f" error={observation.error.status}"
    log.info("%s %s status=%s%s key=%s prompt_tokens=%d completion_tokens=%d seconds=%.3f request_id=%s",
             scope["method"], _route(scope), status or "-", error, observation.key, observation.prompt_tokens,
             observation.completion_tokens, seconds, observation.request_id)


def _route(scope: Scope) -> str:
    # The path itself may be anything, and as long.
    return str(getattr(scope.get("route"), "path", "other"))


def _request_id(scope: Scope) -> str:
    """The caller's own, where it is one that can stand in a log."""
    for name, value in scope["headers"]:
        text = str(value, "latin-1")
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(text):
            return text
    return secrets.token_hex(8)
