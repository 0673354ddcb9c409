# SPDX-License-Identifier: Apache-2.0
"""The two servers of the process: the door, which drains, and the scrapes, which last until its end."""
from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import signal
import socket
import types
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from .app import Gateway
from .connections import Connection

# What is left at the end of the drain is cut off, and has so long to end.
_LAST_SECONDS = 2
# The readers of what is cut off hear so, which takes this long at most.
_LAST_WORDS_SECONDS = 1


@dataclasses.dataclass(frozen=True)
class Times:
    drain_seconds: float
    keep_alive_seconds: int  # that a connection without a request is kept


def bind(host: str, port: int, unread_seconds: int) -> socket.socket:
    """Connections that are taken by it end where their peer takes nothing for a minute more. Raises OSError."""
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    listener = socket.create_server(address[:2], family=family)
    # Accepted connections inherit it; what was written before a stream was given up would keep them open otherwise.
    # The stream itself is given up first, and the log says so.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 1000 * (unread_seconds + 60))
    return listener


def _config(app: ASGIApp, keep_alive_seconds: int) -> uvicorn.Config:
    return uvicorn.Config(app, http=Connection, ws="none", log_config=None, log_level="warning", access_log=False,
                          timeout_keep_alive=keep_alive_seconds, timeout_graceful_shutdown=_LAST_SECONDS)


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Scrapes(uvicorn.Server):
    """Signals are the door's: this one ends after it."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            print(f"outrider-gateway metrics on {_address(listener)}", flush=True)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Door(uvicorn.Server):
    """From the first SIGTERM on it takes nothing new, and says so; a second one ends it at once."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, drain_seconds: float) -> None:
        super().__init__(config)
        self._gateway = gateway
        self._drain_seconds = drain_seconds
        self._idle: asyncio.Task[bool] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=sockets)
        for listener in sockets or ():
            print(f"outrider-gateway listening on {_address(listener)}", flush=True)

    async def main_loop(self) -> None:
        await super().main_loop()
        # Still listening: who comes meanwhile is told to ask another gateway.
        admission = self._gateway.admission
        self._idle = asyncio.create_task(admission.idle.wait())
        if self.force_exit:  # the second signal came at once
            self._idle.cancel()
        await asyncio.wait({self._idle}, timeout=self._drain_seconds)
        admission.cut_off()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(admission.idle.wait(), _LAST_WORDS_SECONDS)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets=sockets)
        if self.force_exit:
            # The server leaves this out then, and logs the place where the lifespan waits.
            await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Does what uvicorn's own does, but a drain that ended well is an exit status of 0."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield

    def handle_exit(self, sig: int, frame: types.FrameType | None) -> None:
        self.force_exit = self._gateway.admission.is_draining
        self._gateway.admission.is_draining = True
        self.should_exit = True
        if self.force_exit and self._idle is not None:
            self._idle.cancel()


async def serve(app: ASGIApp, gateway: Gateway, listener: socket.socket, times: Times,
                scrapes: tuple[ASGIApp, socket.socket] | None) -> bool:
    """Serves until a signal; returns whether everything that ran then has ended well."""
    door = _Door(_config(app, times.keep_alive_seconds), gateway, times.drain_seconds)
    if scrapes is None:
        await door.serve([listener])
    else:
        side = _Scrapes(_config(scrapes[0], times.keep_alive_seconds))
        beside = asyncio.create_task(side.serve([scrapes[1]]))
        try:
            await door.serve([listener])
        finally:
            side.should_exit = True
            await beside
    return not door.force_exit

