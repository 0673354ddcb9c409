# SPDX-License-Identifier: Apache-2.0
"""The way to a program, which a test can disturb: TCP that ends here and goes on as it is told.

Bytes pass in chunks as they come. A fault ends or holds whole connections, as TCP
repairs everything less.
"""
from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time

CHUNK = 1 << 16
REQUEST, REPLY = "request", "reply"


class Proxy:
    """Stands before one program."""

    def __init__(self, target):
        self._target = target
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self.delay = None  # a function that says for how many seconds the next chunk is on its way
        self.bytes_a_second = None
        self.silent = set()  # directions whose bytes are swallowed, without a word
        self._cut = None  # (direction, what is done with the next chunk in it)
        self._ways = set()  # tasks
        self.watch = None  # is shown what comes to the program
        self.said = None  # makes of a chunk that the program says what is heard
        self.open = set()  # connections whose caller has not closed them

    async def start(self):
        self._server = await asyncio.start_server(self._connected, sock=self._socket)

    def reset(self, direction):
        """A part of the next bytes that way arrives; then both ends see a reset."""
        self._cut = (direction, _reset, 0.5)

    def end(self, direction):
        """The same, and both ends see an orderly end."""
        self._cut = (direction, _finish, 0.5)

    def lose_reply(self):
        """The program has done what it was asked; of its answer nothing arrives, but a reset."""
        self._cut = (REPLY, _reset, 0)

    async def has_cut(self):
        return self._cut is None

    async def _connected(self, reader, writer):
        host, _, port = self._target.rpartition(":")
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            _reset(writer)
            return
        ends = (writer, far_writer)
        self.open.add(writer)
        ways = [asyncio.ensure_future(self._carry(REQUEST, reader, far_writer, ends)),
                asyncio.ensure_future(self._carry(REPLY, far_reader, writer, ends))]
        self._ways.update(ways)
        await asyncio.wait(ways)
        self._ways.difference_update(ways)

    async def _carry(self, direction, reader, writer, ends):
        queue = asyncio.Queue(64)
        delivery = asyncio.ensure_future(self._deliver(direction, queue, writer))
        try:
            while data := await reader.read(CHUNK):
                if self._cut is not None and self._cut[0] == direction and self._is_of_a_call(data):
                    _, how, share = self._cut
                    self._cut = None
                    writer.write(data[:int(len(data) * share)])
                    for end in ends:
                        how(end)
                    return
                if self.watch is not None and direction == REQUEST:
                    self.watch(data)
                if self.said is not None and direction == REPLY:
                    data = self.said(data)
                await queue.put((time.monotonic() + (self.delay() if self.delay else 0), data))
            if direction == REQUEST:
                self.open.discard(ends[0])
            await queue.put((0, b""))
            await delivery
        except OSError:
            for end in ends:
                _reset(end)
        finally:
            self.open.discard(ends[0])
            delivery.cancel()
            for end in ends:
                with contextlib.suppress(OSError, RuntimeError):
                    end.close()

    @staticmethod
    def _is_of_a_call(data):
        """Not a ping or a window alone: those frames are short."""
        return len(data) > 60

    async def _deliver(self, direction, queue, writer):
        latest = 0
        with contextlib.suppress(OSError):
            while True:
                due, data = await queue.get()
                latest = max(latest, due)  # nothing overtakes
                while (wait := latest - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                while direction in self.silent:
                    await asyncio.sleep(0.05)
                if not data:
                    return
                if self.bytes_a_second:
                    await asyncio.sleep(len(data) / self.bytes_a_second)
                writer.write(data)
                await writer.drain()

    def close(self):
        self._server.close()
        for way in list(self._ways):
            way.cancel()


def _reset(writer):
    end = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


def _finish(writer):
    with contextlib.suppress(OSError, RuntimeError):
        writer.close()


class Proxies:
    """One before each node; the coordinators share it. Made on the loop that carries the bytes."""

    def __init__(self):
        self._loop = asyncio.get_running_loop()
        self._of = {}

    def before(self, address):
        """Gives the address where the node is reached from now on; called from another thread."""
        proxy = Proxy(address)
        asyncio.run_coroutine_threadsafe(proxy.start(), self._loop).result()
        self._of[address] = proxy
        return proxy.address

    def of(self, member):
        return self._of[member.address]

    def all(self):
        return list(self._of.values())

    def close(self):
        for proxy in self._of.values():
            proxy.close()
