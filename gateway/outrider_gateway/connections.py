# SPDX-License-Identifier: Apache-2.0
"""What a connection may take before it is a request: bytes and time, which the server itself does not bound."""
from __future__ import annotations

import asyncio
import json

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from .errors import ApiError

MOST_HEAD_BYTES = 64 << 10
MOST_HEADERS = 256
MOST_PIPELINED = 2
HEAD_SECONDS = 30.0


class _TooLargeError(Exception):
    """A head that has more than it may. The parser turns it into an error of its own."""


class _UntilClose(int):
    """uvicorn's count of the bytes that a body still lacks, where the connection's end is the body's: any number may
    come, and none are lacking."""

    def __lt__(self, other: object) -> bool:
        return False

    def __sub__(self, other: object) -> _UntilClose:
        return self

    def __ne__(self, other: object) -> bool:
        return False


class Connection(HttpToolsProtocol):
    """One reader's connection, in uvicorn's hands; confined to its event loop.

    It ends with 431 where more than MOST_HEAD_BYTES come in a row that neither belong to a body nor end a head: such
    a head, but also trailers and extensions of chunks, which the parser keeps to their end. It ends without a word
    where a head is not whole HEAD_SECONDS after its first byte. A new one waits for that byte no less than one that
    is kept, as a load balancer may open it long before it has a request.

    It speaks no other protocol than HTTP/1, so a request that would change to one is read anew without that wish. The
    parser takes what follows such a head for the other protocol's, where it is the request's body.
    """

    _has_come = False  # its first byte
    _head_timer: asyncio.TimerHandle | None = None
    _is_too_large = False
    _num_outside = 0  # bytes in a row
    _running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head(max(HEAD_SECONDS, self.timeout_keep_alive))

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)
        # uvicorn tells the last request that has come, which need not be the one that runs.
        if self._running is not None and not self._running.response_complete:
            self._running.disconnected = True
            self._running.message_event.set()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        if cycle.scope["http_version"] == "1.0":
            # Such a reader knows no chunks (RFC 9112, section 6.1), and its connection is not kept.
            cycle.chunked_encoding, cycle.expected_content_length = False, _UntilClose()
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        # What follows a body or a head in one read is not counted, so the parser may keep one read's bytes more.
        self._num_outside += len(data)
        if not self._has_come:
            self._has_come = True
            self._stop_waiting()
        self._unset_keepalive_if_required()
        self._parse(data)
        if self.transport.is_closing():
            return
        if self._num_outside > MOST_HEAD_BYTES:
            self._is_too_large = True
            self.send_400_response("")
        elif self.cycle is None or self.cycle.response_complete:
            self._await_head(HEAD_SECONDS)

    def _parse(self, data: bytes) -> None:
        """Does what uvicorn's own does, but keeps what has come behind the head of a request to upgrade."""
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                if self.parser.get_method() == b"CONNECT":
                    self.send_400_response("CONNECT is for proxies, and this is none")
                    return
                data = self._head_without_upgrade() + data[upgrade.args[0]:]
                # Where the connection is not to be kept, the old one takes nothing more.
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            except httptools.HttpParserError:
                message = "Invalid HTTP request received."
                self.logger.warning(message)
                self.send_400_response(message)
                return

    def _head_without_upgrade(self) -> bytes:
        """The head that has been read, but for its `Upgrade`, which a server may ignore (RFC 9110, section 7.8)."""
        first = b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, self.parser.get_http_version().encode())
        lines = [name + b": " + value for name, value in self.headers if name != b"upgrade"]
        return b"\r\n".join([first, *lines, b"", b""])

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > MOST_HEADERS:
            self._refuse()

    def on_headers_complete(self) -> None:
        if len(self.url) + sum(len(name) + len(value) for name, value in self.headers) > MOST_HEAD_BYTES:
            self._refuse()
        self._num_outside = 0
        self._stop_waiting()
        if self.parser.should_upgrade():
            return  # it is no request until it has been read anew
        super().on_headers_complete()
        if len(self.pipeline) > MOST_PIPELINED:
            self._refuse()
        if self.pipeline:
            # uvicorn reads no more until the request before has been answered, and would not see its reader leave.
            self.flow.resume_reading()

    def on_body(self, body: bytes) -> None:
        self._num_outside = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """The refusal of what is no request, in the shape of the others; no word in the midst of another answer."""
        cycle = self.cycle
        if self.pipeline or (cycle is not None and cycle.response_started and not cycle.response_complete):
            self.transport.close()
            return
        refusal = ApiError(400, f"the request is not HTTP: {msg}", code="bad_http")
        if self._is_too_large:
            refusal = ApiError(431, f"a request's head may have {MOST_HEAD_BYTES} bytes and {MOST_HEADERS} headers",
                               code="head_too_large")
        body = json.dumps(refusal.body()).encode()
        lines = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)),
                 (b"connection", b"close")]
        head = b"".join(name + b": " + value + b"\r\n" for name, value in self.server_state.default_headers + lines)
        self.transport.write(STATUS_LINE[refusal.status] + head + b"\r\n" + body)
        self.transport.close()

    def _refuse(self) -> None:
        self._is_too_large = True
        raise _TooLargeError

    def _await_head(self, seconds: float) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _give_up(self) -> None:
        self._head_timer = None
        if not self.transport.is_closing():
            self.transport.close()
