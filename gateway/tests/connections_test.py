# SPDX-License-Identifier: Apache-2.0
"""What connections may take, over real sockets: heads that do not end, or do not come, are given up."""
import asyncio
import json
import sys
import time
import unittest
from unittest import mock

import uvicorn
from stand_ins import HERE

from outrider_gateway import connections, server

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
KIB = b"x" * 1024
# This is how JDK's HttpClient and `curl --http2` ask on plain http.
UPGRADE = HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"


class Echo:
    """Answers with the length of what it was sent, as soon as it may; hears meanwhile where its reader leaves."""

    def __init__(self):
        self.says_length = True
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.has_left = asyncio.Event()
        self.num_requests = 0

    async def _hear(self, receive):
        while (await receive())["type"] != "http.disconnect":
            pass
        self.has_left.set()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        self.num_requests += 1
        length, is_more = 0, True
        while is_more:
            message = await receive()
            length += len(message.get("body", b""))
            is_more = message.get("more_body", False)
        hearing = asyncio.create_task(self._hear(receive))
        await self.may_answer.wait()
        hearing.cancel()
        body = str(length).encode()
        headers = [(b"content-length", b"%d" % len(body))] if self.says_length else []
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for byte in body:
            await send({"type": "http.response.body", "body": bytes([byte]), "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class ConnectionsTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.app = Echo()
        config = server._config(self.app, keep_alive_seconds=75)
        config.lifespan = "off"
        self.server = uvicorn.Server(config)
        self.server.capture_signals = lambda: mock.MagicMock()
        listener = server.bind("127.0.0.1", 0, 7)
        self.address = listener.getsockname()
        self.serving = asyncio.create_task(self.server.serve([listener]))

    async def asyncTearDown(self):
        self.server.should_exit = self.server.force_exit = True
        await self.serving

    async def connect(self):
        reader, writer = await asyncio.open_connection(*self.address)
        self.addCleanup(writer.close)
        return reader, writer

    async def answer(self, reader):
        """(status, body) of an answer; nothing where the connection ends without one."""
        async with asyncio.timeout(10):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return int(head.split()[1]), await reader.readexactly(length)

    async def is_closed(self, reader):
        try:
            async with asyncio.timeout(5):
                return await reader.read() == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    async def num_sent_until_closed(self, *first, part, most):
        """How many parts are taken before the connection ends, and what was answered by then."""
        reader, writer = await self.connect()
        for one in first:
            writer.write(one)
        for i in range(most):
            if reader.at_eof() or writer.is_closing():
                return i, reader._buffer
            writer.write(part)
            try:
                await writer.drain()
            except ConnectionError:
                return i, reader._buffer
            await asyncio.sleep(0)
        return most, reader._buffer

    async def test_a_head_without_end_is_refused_soon(self):
        for first in (b"GET /", HEAD + b"a: ", HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;"):
            with self.subTest(first[-9:]):
                num, answered = await self.num_sent_until_closed(first, part=16 * KIB, most=2000)
                self.assertLess(num, 1000)  # of the 4 and what is on its way
                if answered:
                    self.assertIn(b" 431 ", answered)

    async def test_trailers_without_end_are_refused_soon(self):
        body = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n"
        for part in (b"a: " + 16 * KIB + b"\r\n", 16 * KIB):
            num, _ = await self.num_sent_until_closed(body, part=part, most=2000)
            self.assertLess(num, 1000)

    async def test_a_head_that_is_too_large_is_told_so_in_the_shape_of_other_refusals(self):
        for head in (b"a: " + 65 * KIB + b"\r\n", b"a: b\r\n" * 300):
            reader, writer = await self.connect()
            writer.write(HEAD + head + b"\r\n")
            status, body = await self.answer(reader)
            self.assertEqual((status, json.loads(body)["error"]["code"]), (431, "head_too_large"))
        self.assertEqual(self.app.num_requests, 0)

    async def test_what_is_no_http_is_told_so_in_the_shape_of_other_refusals(self):
        reader, writer = await self.connect()
        writer.write(b"hello\r\n\r\n")
        with self.assertLogs("uvicorn.error", "WARNING"):
            status, body = await self.answer(reader)
        self.assertEqual((status, json.loads(body)["error"]["type"]), (400, "invalid_request_error"))

    async def test_large_bodies_are_none_of_a_heads_bytes(self):
        reader, writer = await self.connect()
        for _ in range(2):  # on one connection
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % (300 * 1024) + 300 * KIB)
            self.assertEqual(await self.answer(reader), (200, b"%d" % (300 * 1024)))
            writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + 300 * (b"400\r\n" + KIB + b"\r\n")
                         + b"0\r\n\r\n")
            self.assertEqual(await self.answer(reader), (200, b"%d" % (300 * 1024)))

    async def test_a_connection_without_a_head_is_given_up(self):
        with mock.patch.object(connections, "HEAD_SECONDS", 0.1):
            for half in (b"P", HEAD, HEAD + b"a: b"):
                with self.subTest(half):
                    reader, writer = await self.connect()
                    writer.write(half)
                    self.assertTrue(await self.is_closed(reader))

    async def test_a_new_connection_waits_as_long_as_one_that_is_kept(self):
        for head_seconds, keep_alive_seconds in (0.1, 0.3), (0.3, 0.1):
            self.server.config.timeout_keep_alive = keep_alive_seconds
            with self.subTest(keep_alive_seconds), mock.patch.object(connections, "HEAD_SECONDS", head_seconds):
                begun = time.monotonic()
                reader, _ = await self.connect()
                self.assertTrue(await self.is_closed(reader))
                self.assertGreater(time.monotonic() - begun, 0.29)

    async def test_a_connection_that_is_kept_waits_for_whole_heads_only(self):
        with mock.patch.object(connections, "HEAD_SECONDS", 0.2):
            for more in (b"\r\n", b"GET / HT"):
                reader, writer = await self.connect()
                writer.write(HEAD + b"Content-Length: 0\r\n\r\n")
                self.assertEqual(await self.answer(reader), (200, b"0"))
                writer.write(more)
                self.assertTrue(await self.is_closed(reader))

    async def test_a_request_may_take_longer_than_its_head(self):
        self.app.may_answer.clear()
        with mock.patch.object(connections, "HEAD_SECONDS", 0.1):
            reader, writer = await self.connect()
            writer.write(HEAD + b"Content-Length: 2\r\n\r\nx")
            await asyncio.sleep(0.3)
            writer.write(b"y")
            await asyncio.sleep(0.3)
            self.app.may_answer.set()
            self.assertEqual(await self.answer(reader), (200, b"2"))

    async def test_requests_behind_one_that_runs_are_bounded(self):
        self.app.may_answer.clear()
        reader, writer = await self.connect()
        writer.write((HEAD + b"Content-Length: 0\r\n\r\n") * 100)
        self.assertTrue(await self.is_closed(reader))
        self.assertEqual(self.app.num_requests, 1)
        await asyncio.wait_for(self.app.has_left.wait(), 5)
        self.app.may_answer.set()

    async def test_a_reader_who_has_asked_for_more_and_then_leaves_is_noticed(self):
        self.app.may_answer.clear()
        for num_behind in range(connections.MOST_PIPELINED + 1):
            with self.subTest(num_behind):
                self.app.has_left.clear()
                _, writer = await self.connect()
                writer.write(HEAD + b"Content-Length: 0\r\n\r\n")
                await asyncio.sleep(0.05)
                writer.write((HEAD + b"Content-Length: 1\r\n\r\nx") * num_behind)
                await asyncio.sleep(0.05)
                self.assertFalse(self.app.has_left.is_set())
                writer.close()
                await asyncio.wait_for(self.app.has_left.wait(), 5)
        self.assertEqual(self.app.num_requests, connections.MOST_PIPELINED + 1)
        self.app.may_answer.set()

    async def test_requests_that_wait_behind_another_are_answered_in_their_order(self):
        self.app.may_answer.clear()
        reader, writer = await self.connect()
        for length in range(connections.MOST_PIPELINED + 1):
            writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % length + b"x" * length)
        await asyncio.sleep(0.05)
        self.app.may_answer.set()
        for length in range(connections.MOST_PIPELINED + 1):
            self.assertEqual(await self.answer(reader), (200, b"%d" % length))

    async def upgrading(self, *parts, num_answers=1, pause=0.05):
        """The answers to what comes in these parts."""
        reader, writer = await self.connect()
        for part in parts:
            writer.write(part)
            await asyncio.sleep(pause)
        return [await self.answer(reader) for _ in range(num_answers)]

    async def test_a_body_behind_an_upgrade_that_is_not_taken_is_read_wherever_reads_part_it(self):
        for body in b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n":
            whole = UPGRADE + body
            for answers in await asyncio.gather(*(self.upgrading(whole[:i], whole[i:]) for i in range(len(whole)))):
                self.assertEqual(answers, [(200, b"5")])
        self.assertEqual(await self.upgrading(*(bytes([one]) for one in whole), pause=0.002), [(200, b"5")])

    async def test_a_body_behind_an_upgrade_is_never_a_request(self):
        hidden = HEAD + b"Content-Length: 0\r\n\r\n"
        for parts in (UPGRADE + b"Content-Length: %d\r\n\r\n" % len(hidden), hidden), \
                (UPGRADE + b"Content-Length: %d\r\n\r\n" % len(hidden) + hidden,):
            before = self.app.num_requests
            self.assertEqual(await self.upgrading(*parts), [(200, b"%d" % len(hidden))])
            self.assertEqual(self.app.num_requests, before + 1)

    async def test_requests_about_one_with_an_upgrade_are_answered_in_their_order(self):
        def asked(head, length):
            return head + b"Content-Length: %d\r\n\r\n" % length + b"x" * length
        whole = asked(HEAD, 1) + asked(UPGRADE, 2) + asked(UPGRADE, 3)
        for answers in await asyncio.gather(*(
                self.upgrading(whole[:i], whole[i:], num_answers=3) for i in range(0, len(whole), 3))):
            self.assertEqual(answers, [(200, b"1"), (200, b"2"), (200, b"3")])

    async def test_an_upgrade_without_a_body_is_a_request_like_others(self):
        for name in b"websocket", b"h2c":
            reader, writer = await self.connect()
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: " + name + b"\r\n\r\n")
            self.assertEqual(await self.answer(reader), (200, b"0"))

    async def test_an_upgrade_on_a_connection_that_is_not_kept_is_answered(self):
        lines = b"Host: x\r\nConnection: close, Upgrade\r\nUpgrade: TLS/1.2\r\n"
        for head in (b"POST / HTTP/1.1\r\n" + lines,
                     b"POST / HTTP/1.0\r\n" + lines.replace(b"close, ", b"")):
            for body in b"\r\n", b"Content-Length: 5\r\n\r\nhello":
                whole = head + body
                expected = [(200, b"5" if b"hello" in body else b"0")]
                for answers in await asyncio.gather(*(
                        self.upgrading(whole[:i], whole[i:]) for i in range(0, len(whole), 5))):
                    self.assertEqual(answers, expected)

    async def test_a_reader_of_http_1_0_gets_no_chunks(self):
        for self.app.says_length in True, False:
            for wish in b"", b"Connection: keep-alive\r\n":
                reader, writer = await self.connect()
                writer.write(b"POST / HTTP/1.0\r\n" + wish + b"Content-Length: 12\r\n\r\n" + b"x" * 12)
                async with asyncio.timeout(5):
                    head, _, body = (await reader.read()).lower().partition(b"\r\n\r\n")
                self.assertEqual((body, b"content-length: 2" in head), (b"12", self.app.says_length))
                self.assertNotIn(b"transfer-encoding", head)
                self.assertIn(b"connection: close", head)

    async def test_a_trailer_is_no_upgrade(self):
        body = b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n"
        for head in HEAD, UPGRADE:
            before = self.app.num_requests
            whole = head + body + HEAD + b"Content-Length: 1\r\n\r\nx"
            self.assertEqual(await self.upgrading(whole, num_answers=2), [(200, b"5"), (200, b"1")])
            self.assertEqual(self.app.num_requests, before + 2)

    async def test_what_follows_a_connect_is_never_a_request(self):
        for target in b"x:80", b"/":
            reader, writer = await self.connect()
            writer.write(b"CONNECT " + target + b" HTTP/1.1\r\nHost: x\r\n\r\n" + HEAD + b"\r\n")
            self.assertEqual((await self.answer(reader))[0], 400)
            self.assertTrue(await self.is_closed(reader))
        self.assertEqual(self.app.num_requests, 0)


class KeepAliveTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_connection_without_a_request_ends_when_its_flag_says(self):
        program = await asyncio.create_subprocess_exec(
            sys.executable, "-B", "-m", "outrider_gateway", "--listen", "127.0.0.1:0", "--coordinator",
            "127.0.0.1:1", "--keep-alive-seconds", "1", stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL, cwd=HERE.parent)
        try:
            line = (await asyncio.wait_for(program.stdout.readline(), 30)).decode()
            reader, writer = await asyncio.open_connection("127.0.0.1", int(line.rpartition(":")[2]))
            writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertIn(b"200 OK", await reader.readuntil(b'{"status":"ok"}'))
            self.assertEqual(await asyncio.wait_for(reader.read(), 20), b"")
            writer.close()
        finally:
            program.terminate()
            await program.wait()


if __name__ == "__main__":
    unittest.main()
