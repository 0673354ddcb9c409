# SPDX-License-Identifier: Apache-2.0
"""Web pages of other origins: which may ask, by preflights and by the headers of answers."""
import asyncio
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

import grpc
from stand_ins import ASKED, HERE, Reader, Stub, gateway, http_request, rpc_error, word

from outrider_gateway import app, keys, main
from outrider_gateway.origins import origins_of

PAGE, OTHER = "https://page.example", "https://other.example"


class OriginsTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "keys"
        path.write_text("a key\n")
        self.keys = keys.Keys(path)

    async def ask(self, origin, *allowed, stub=None, method="POST", **changes):
        """(status, headers) of a request that a page of this origin sends to a gateway with keys."""
        self.stub = stub or Stub(word())
        application = app.create_app(gateway(self.stub, keys=self.keys), with_metrics=False,
                                     allowed_origins=list(allowed))
        headers = [(b"origin", origin.encode())]
        if method != "OPTIONS":
            headers.append((b"authorization", b"Bearer key"))
        if method == "OPTIONS":
            headers += [(b"access-control-request-method", b"POST"),
                        (b"access-control-request-headers", b"authorization,content-type,x-stainless-lang")]
        body = http_request(b"" if method == "OPTIONS" else ASKED | changes)
        status, headers, _ = await Reader(application, body, headers=headers, method=method).ask()
        return status, headers

    async def test_no_other_origin_may_ask_unless_it_is_allowed(self):
        status, headers = await self.ask(PAGE, method="OPTIONS")
        self.assertEqual(status, 405)
        self.assertFalse([name for name in headers if name.startswith("access-control")])
        _, headers = await self.ask(PAGE)
        self.assertNotIn("access-control-allow-origin", headers)

    async def test_a_preflight_is_answered_without_a_key_and_asks_nobody(self):
        status, headers = await self.ask(PAGE, PAGE, method="OPTIONS")
        self.assertEqual((status, headers["access-control-allow-origin"]), (200, PAGE))
        self.assertIn("POST", headers["access-control-allow-methods"])
        self.assertIn("authorization", headers["access-control-allow-headers"])
        self.assertNotIn("access-control-allow-credentials", headers)
        self.assertIn("x-request-id", headers)
        self.assertEqual(self.stub.num_calls, 0)

    async def test_a_preflight_of_another_origin_is_refused(self):
        status, headers = await self.ask(OTHER, PAGE, method="OPTIONS")
        self.assertEqual(status, 400)
        self.assertNotIn("access-control-allow-origin", headers)

    async def test_answers_and_streams_and_refusals_may_be_read_by_the_page(self):
        lost = rpc_error(grpc.StatusCode.UNAVAILABLE)
        for expected, changes in ((200, {}), (200, {"stream": True}), (400, {"top_p": 5}),
                                  (503, {"stub": Stub(lost)})):
            for allowed in PAGE, "*":
                with self.subTest(expected, allowed=allowed, **changes):
                    status, headers = await self.ask(PAGE, allowed, **changes)
                    self.assertEqual((status, headers["access-control-allow-origin"]), (expected, allowed))
                    self.assertIn("x-request-id", headers["access-control-expose-headers"])
        _, headers = await self.ask(OTHER, PAGE)
        self.assertNotIn("access-control-allow-origin", headers)

    async def test_what_is_not_under_v1_is_read_by_no_page(self):
        application = app.create_app(gateway(Stub(word())), with_metrics=True, allowed_origins=["*"])
        for path, is_read in ("/v1/models", True), ("/metrics", False), ("/health", False), ("/", False):
            with self.subTest(path):
                reader = Reader(application, http_request(b""), path=path, method="GET",
                                headers=[(b"origin", PAGE.encode())])
                status, headers, _ = await reader.ask()
                self.assertEqual((status, "access-control-allow-origin" in headers), (200, is_read))

    async def refusal(self, *allowed, is_on_loopback=True, keys=None, path="/v1/completions", method="POST",
                      **headers):
        """The code with which such a request is refused; none where it is answered."""
        stub = Stub(word())
        parts = {} if keys is None else {"keys": keys}
        application = app.create_app(gateway(stub, **parts), with_metrics=True, allowed_origins=list(allowed),
                                     is_on_loopback=is_on_loopback)
        sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        reader = Reader(application, http_request(ASKED if method == "POST" else b""), path=path, method=method,
                        headers=sent)
        status, _, _ = await reader.ask()
        if status == 200:
            return None
        self.message = reader.error["message"]
        self.assertEqual((status, reader.error["type"], stub.num_calls), (403, "permission_error", 0))
        return reader.error["code"]

    async def test_without_keys_a_page_of_another_origin_is_refused_and_told_what_to_do(self):
        for headers in ({"content_type": "text/plain"}, {"sec_fetch_site": "cross-site"},
                        {"sec_fetch_site": "same-site"}):
            for host in "localhost:8000", "127.0.0.1:8000", "10.2.3.4:8000", "gateway.example":
                for origin in PAGE, "null", "http://localhost:3000", "http://127.0.0.1", f"http://{host}0", "http:":
                    with self.subTest(host=host, origin=origin, **headers):
                        code = await self.refusal(is_on_loopback=False, host=host, origin=origin, **headers)
                        self.assertEqual(code, "origin_not_allowed")
        self.assertEqual(await self.refusal(OTHER, host="localhost:8000", origin=PAGE), "origin_not_allowed")
        self.assertIn(f"--allowed-origins {PAGE}", self.message)
        self.assertEqual(await self.refusal(origin=PAGE, method="OPTIONS"), "origin_not_allowed")
        self.assertEqual(await self.refusal(origin=PAGE, path="/metrics", method="GET"), "origin_not_allowed")

    async def test_without_keys_our_own_page_and_allowed_ones_and_programs_are_served(self):
        for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000", "[::1]", "LOCALHOST", "localhost.:8000",
                     "app.localhost", "host.docker.internal:8000"):
            for headers in {}, {"origin": f"http://{host.lower()}"}, {"origin": f"https://{host.lower()}"}:
                with self.subTest(host=host, **headers):
                    self.assertIsNone(await self.refusal(host=host, **headers))
        self.assertIsNone(await self.refusal())  # of HTTP/1.0, which has no Host
        self.assertIsNone(await self.refusal(PAGE, host="localhost:8000", origin=PAGE))
        self.assertIsNone(await self.refusal("*", host="anything.example", origin=OTHER))
        self.assertIsNone(await self.refusal("null", host="localhost", origin="null"))

    async def test_a_page_that_comes_through_a_proxy_is_our_own(self):
        for host in "page.example", "page.example:443":
            self.assertIsNone(await self.refusal(is_on_loopback=False, host=host, origin=PAGE))
            self.assertEqual(await self.refusal(host=host, origin=PAGE), "host_not_allowed")
            self.assertIn(f"--allowed-origins {PAGE}", self.message)
            self.assertIsNone(await self.refusal(PAGE, host=host, origin=PAGE))
            self.assertIsNone(await self.refusal(PAGE, host=host))
        # One that puts our own address in place of its name.
        self.assertIsNone(await self.refusal(host="127.0.0.1:8000", origin=PAGE, sec_fetch_site="same-origin"))

    async def test_on_loopback_without_keys_no_name_is_answered_that_may_be_a_pages_own(self):
        for host in ("rebound.example:8000", "localhost.rebound.example", "127.0.0.1.rebound.example", "x",
                     "xlocalhost", "[x]"):
            own = {"origin": f"http://{host}"}
            for headers in {}, own, {**own, "sec_fetch_site": "same-origin"}:
                with self.subTest(host=host, **headers):
                    self.assertEqual(await self.refusal(host=host, **headers), "host_not_allowed")
                    self.assertIn(f"--allowed-origins http://{host}", self.message)
        self.assertEqual(await self.refusal(host="x", origin=OTHER), "host_not_allowed")
        self.assertNotIn(OTHER, self.message)
        self.assertEqual(await self.refusal(host="x", path="/v1/models", method="GET"), "host_not_allowed")
        self.assertIsNone(await self.refusal(is_on_loopback=False, host="gateway.example:8000"))

    async def test_with_keys_whoever_has_one_is_served(self):
        for host, origin in ("rebound.example", "http://rebound.example"), ("localhost:8000", PAGE):
            self.assertIsNone(await self.refusal(keys=self.keys, host=host, origin=origin,
                                                 authorization="Bearer key"))

    def test_origins_are_repeated_or_parted_by_commas(self):
        self.assertEqual(origins_of([f"{PAGE}, http://localhost:3000", "null", "*"]),
                         [PAGE, "http://localhost:3000", "null", "*"])
        self.assertEqual(origins_of([]), [])

    def test_what_no_browser_sends_is_refused(self):
        for wrong in ("page.example", f"{PAGE}/", f"{PAGE}/path", "https://*.example", "https://Page.example", "",
                      f"{PAGE},,{OTHER}"):
            with self.subTest(wrong), self.assertRaisesRegex(ValueError, "is no origin"):
                origins_of([wrong])

    def test_the_flag_names_what_is_wrong(self):
        for value, status in (f"{PAGE},{OTHER}", 0), ("page.example", 2):
            said = io.StringIO()
            with mock.patch("sys.argv", ["outrider-gateway", "--coordinator", "127.0.0.1:1", "--check-config",
                                         "--allowed-origins", value]), \
                    mock.patch.object(main.log, "set_up"), contextlib.redirect_stderr(said):
                self.assertEqual(main.main(), status)
            self.assertEqual("--allowed-origins: 'page.example' is no origin" in said.getvalue(), status == 2)

    async def test_the_program_knows_whether_it_is_on_loopback_and_has_keys(self):
        for flags, status in ((("--listen", "127.0.0.1:0"), b"403"), (("--listen", "0.0.0.0:0"), b"200"),
                              (("--listen", "127.0.0.1:0", "--api-keys", self.keys._path), b"200"),
                              (("--listen", "127.0.0.1:0", "--allowed-origins", "http://rebound.example"), b"200")):
            program = await asyncio.create_subprocess_exec(
                sys.executable, "-B", "-m", "outrider_gateway", *flags, "--coordinator", "127.0.0.1:1",
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL, cwd=HERE.parent)
            try:
                line = (await asyncio.wait_for(program.stdout.readline(), 30)).decode()
                reader, writer = await asyncio.open_connection("127.0.0.1", int(line.rpartition(":")[2]))
                writer.write(b"GET /live HTTP/1.1\r\nHost: rebound.example:8000\r\n\r\n")
                self.assertEqual((await reader.readline()).split()[1], status, flags)
                writer.close()
            finally:
                program.terminate()
                await program.wait()


if __name__ == "__main__":
    unittest.main()
