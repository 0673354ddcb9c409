# SPDX-License-Identifier: Apache-2.0
"""Clients whose requests are not whole: HTTP/2 by hand."""
import select
import socket
import struct
import threading
import time

from closed_window import ACK, DATA, END_HEADERS, END_STREAM, HEADERS, INITIAL_WINDOW_SIZE, PING, SETTINGS, frame, literal

RST_STREAM, WINDOW_UPDATE = 3, 8
WINDOW, FRAME = 65535, 16384  # what HTTP/2 begins with


def headers_of(address, path):
    """A call's headers."""
    return b"".join(literal(*pair) for pair in (
        (b":method", b"POST"), (b":scheme", b"http"), (b":authority", address.encode()), (b":path", path),
        (b"te", b"trailers"), (b"content-type", b"application/grpc")))


class UnfinishedRequests:
    """So many calls of a method on one connection, each with a message of that size but for its last byte, as fast as
    the server takes it."""

    def __init__(self, address, path, num_calls, message_bytes):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._received = b""
        self._window, self._initial = WINDOW, WINDOW
        self._windows, self._left = {}, {}
        self.ended = set()  # calls that the server has ended
        self._begin = struct.pack(">BI", 0, message_bytes)
        headers = headers_of(address, path)
        opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b"")
        for stream in range(1, 2 * num_calls, 2):
            opening += frame(HEADERS, END_HEADERS, stream, headers)
            opening += frame(DATA, 0, stream, self._begin)
            self._windows[stream] = -len(self._begin)  # beside the initial one
            self._left[stream] = message_bytes - 1
            self._window -= len(self._begin)
        self._socket.sendall(opening)
        self._is_closed = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self):
        self._is_closed = True
        self._thread.join()
        self._socket.close()

    def _run(self):
        try:
            while not self._is_closed:
                can_send = self._next()
                readable, writable, _ = select.select([self._socket], [self._socket] if can_send else [], [], 0.1)
                if readable:
                    self._take(self._socket.recv(1 << 16))
                elif writable:
                    self._send(*can_send)
        except OSError:
            pass  # the server has hung up

    def _next(self):
        """A stream that may send now, and how much."""
        if self._window <= 0:
            return None
        for stream, left in self._left.items():
            size = min(left, self._initial + self._windows[stream], self._window, FRAME)
            if size > 0:
                return stream, size
        return None

    def _send(self, stream, size):
        self._socket.sendall(frame(DATA, 0, stream, bytes(size)))
        self._window -= size
        self._windows[stream] -= size
        self._left[stream] -= size
        # The others have their turn before it.
        self._left[stream] = self._left.pop(stream)

    def _take(self, data):
        if not data:
            raise OSError("closed")
        self._received += data
        while len(self._received) >= 9:
            end = 9 + int.from_bytes(self._received[:3], "big")
            if len(self._received) < end:
                return
            kind, flags, stream = struct.unpack(">BBI", self._received[3:9])
            self._handle(kind, flags, stream, self._received[9:end])
            self._received = self._received[end:]

    def _handle(self, kind, flags, stream, payload):
        if kind == WINDOW_UPDATE:
            (more,) = struct.unpack(">I", payload)
            if stream == 0:
                self._window += more
            elif stream in self._windows:
                self._windows[stream] += more
        elif kind == SETTINGS and not flags & ACK:
            for place in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[place:place + 6])
                if name == INITIAL_WINDOW_SIZE:
                    self._initial = value
            self._socket.sendall(frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            self._socket.sendall(frame(PING, ACK, 0, payload))
        elif kind == RST_STREAM or kind == HEADERS and flags & END_STREAM:
            self._left.pop(stream, None)
            self.ended.add(stream)


class EmptyRequests:
    """Calls of a method on one connection, so many a second, that are begun and say nothing."""

    def __init__(self, address, path, rate):
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self._headers = headers_of(address, path)
        self._rate = rate
        self._stream = 1
        self._is_closed = False
        self._received = b""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self):
        self._is_closed = True
        self._thread.join()
        self._socket.close()

    @property
    def num_begun(self):
        return self._stream // 2

    def _run(self):
        begin = time.monotonic()
        self._socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0, b""))
        while not self._is_closed:
            calls = b""
            while self.num_begun < (time.monotonic() - begin) * self._rate:
                calls += frame(HEADERS, END_HEADERS, self._stream, self._headers)
                self._stream += 2
            self._socket.sendall(calls)
            if select.select([self._socket], [], [], 0.005)[0]:
                self._take(self._socket.recv(1 << 16))

    def _take(self, data):
        """Answers what keeps the connection."""
        self._received += data
        while len(self._received) >= 9:
            end = 9 + int.from_bytes(self._received[:3], "big")
            if len(self._received) < end:
                return
            kind, flags = self._received[3:5]
            if kind in (SETTINGS, PING) and not flags & ACK:
                self._socket.sendall(frame(kind, ACK, 0, self._received[9:end] if kind == PING else b""))
            self._received = self._received[end:]
