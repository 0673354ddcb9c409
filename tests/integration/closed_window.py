# SPDX-License-Identifier: Apache-2.0
"""A client of Generate that does not read: HTTP/2 by hand, with a window of no bytes."""
import socket
import struct
import threading

DATA, HEADERS, SETTINGS, PING = 0, 1, 4, 6
ACK, END_STREAM, END_HEADERS = 1, 1, 4
INITIAL_WINDOW_SIZE = 4


def frame(kind, flags, stream, payload):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header field as HPACK has it without tables."""
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def varint(value):
    digits = b""
    while value > 0x7f:
        digits += bytes([value & 0x7f | 0x80])
        value >>= 7
    return digits + bytes([value])


def field(number, value):
    """A field of a message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def generate_request(max_tokens):
    """A GenerateRequest: the prompt 1 2 3, plain decoding, past every end."""
    prompt = field(1, struct.pack("<3I", 1, 2, 3))
    return field(2, prompt) + field(7, max_tokens) + field(9, 0) + field(10, 1)


class ClosedWindowClient:
    """Asks for text and takes none of it, until its window is opened. It answers pings, so that it is not taken for
    dead."""

    def __init__(self, address, request):
        """`request`: the bytes of a GenerateRequest."""
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)))
        self.data = b""  # what it has taken
        self.has_ended = False  # its stream, with a status
        headers = b"".join(literal(*pair) for pair in (
            (b":method", b"POST"), (b":scheme", b"http"), (b":authority", address.encode()),
            (b":path", b"/outrider.v1.GenerationService/Generate"),
            (b"te", b"trailers"), (b"content-type", b"application/grpc")))
        self._socket.sendall(
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" +
            frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, 0)) +
            frame(HEADERS, END_HEADERS, 1, headers) +
            frame(0, END_STREAM, 1, struct.pack(">BI", 0, len(request)) + request))
        threading.Thread(target=self._answer_pings, daemon=True).start()

    def _answer_pings(self):
        try:
            while head := self._receive(9):
                size = int.from_bytes(head[:3], "big")
                payload = self._receive(size)
                if head[3] == PING and not head[4] & ACK:
                    self._socket.sendall(frame(PING, ACK, 0, payload))
                if head[3] == DATA:
                    self.data += payload
                if head[3] == HEADERS and head[4] & END_STREAM:
                    self.has_ended = True
        except OSError:
            pass  # closed

    def _receive(self, size):
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise OSError("closed")
            data += more
        return data

    def open_window(self):
        """From now on it reads."""
        self._socket.sendall(frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW_SIZE, (1 << 16) - 1)))

    def num_messages(self):
        """That it has taken whole."""
        count, rest = 0, self.data
        while len(rest) >= 5 and len(rest) >= 5 + (size := int.from_bytes(rest[1:5], "big")):
            count, rest = count + 1, rest[5 + size:]
        return count

    def close(self):
        self._socket.close()
