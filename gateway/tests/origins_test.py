# SPDX-License-Identifier: Apache-2.0
"""Web pages of other origins: which may ask, by preflights and by the headers of answers."""
import contextlib
import io
import unittest
from unittest import mock

import grpc
from stand_ins import ASKED, Reader, Stub, gateway, http_request, rpc_error, word

from outrider_gateway import app, main
from outrider_gateway.origins import origins_of

PAGE, OTHER = "https://page.example", "https://other.example"


class OriginsTest(unittest.IsolatedAsyncioTestCase):
    async def ask(self, origin, *allowed, stub=None, method="POST", **changes):
        """(status, headers) of a request that a page of this origin sends."""
        self.stub = stub or Stub(word())
        application = app.create_app(gateway(self.stub), with_metrics=False, allowed_origins=list(allowed))
        headers = [(b"origin", origin.encode())]
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


if __name__ == "__main__":
    unittest.main()
