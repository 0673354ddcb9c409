# SPDX-License-Identifier: Apache-2.0
"""The application by itself, called as servers call it: what goes wrong is said in one shape, and bounded."""
import asyncio
import json
import pathlib
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import make_stubs  # noqa: E402

make_stubs.main()

import grpc  # noqa: E402
import httpx2  # noqa: E402
import openai  # noqa: E402
from google.rpc import error_details_pb2, status_pb2  # noqa: E402

from outrider.v1 import generation_pb2 as pb  # noqa: E402
from outrider_gateway import app, errors, keys, serving  # noqa: E402
from outrider_gateway.coordinators import Coordinator, Coordinators  # noqa: E402
from outrider_gateway.tls import Credentials  # noqa: E402

ASKED = {"model": "m", "prompt": "p", "max_tokens": 3}


class Stub:
    """A coordinator that says this to everybody."""

    def __init__(self, *steps):
        self._steps = steps
        self.num_calls = 0

    def Generate(self, request, **_):
        del request
        self.num_calls += 1
        return self

    def cancel(self):
        pass

    async def __aiter__(self):
        for step in self._steps:
            if isinstance(step, Exception):
                raise step
            yield step


def failed(detail):
    """INTERNAL, with this detail."""
    status = status_pb2.Status(code=grpc.StatusCode.INTERNAL.value[0], message="failed")
    status.details.add().Pack(detail)
    return grpc.aio.AioRpcError(
        grpc.StatusCode.INTERNAL, grpc.aio.Metadata(),
        grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString())), details="failed")


class AppTest(unittest.IsolatedAsyncioTestCase):
    def over(self, stub, **options):
        coordinators = Coordinators([], Credentials(None))
        coordinators._nodes = {"10.1.2.3:7000": Coordinator("10.1.2.3:7000", "", None, stub)}
        self.gateway = app.Gateway(app.Parts(coordinators, keys.Keys(None)), app.Options(model_name="m", **options))
        return app.create_app(self.gateway, with_metrics=True)

    async def ask(self, application, *received, headers=()):
        """(status, headers, body) of what is answered; the server has these messages, then none for ever."""
        messages, sent = list(received), []

        async def receive():
            if not messages:
                await asyncio.Event().wait()
            return messages.pop(0)

        async def send(message):
            sent.append(message)
        scope = {"type": "http", "method": "POST", "path": "/v1/completions", "headers": list(headers),
                 "query_string": b"", "http_version": "1.1", "scheme": "http", "server": ("x", 80)}
        try:
            await application(scope, receive, send)
        finally:
            self.sent = sent
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return sent[0]["status"], found, b"".join(one.get("body", b"") for one in sent)

    def request(self, **changes):
        return {"type": "http.request", "body": json.dumps(ASKED | changes).encode(), "more_body": False}

    async def test_a_mistake_of_ours_has_the_shape_of_other_refusals_and_is_logged(self):
        application = self.over(None)  # which cannot even be called
        self.gateway._check_logprobs = None
        with self.assertRaises(TypeError):  # for the server's log
            await self.ask(application, self.request())
        self.assertEqual(self.sent[0]["status"], 500)
        self.assertEqual(set(json.loads(self.sent[1]["body"])["error"]), {"message", "type", "param", "code"})

    async def test_a_mistake_in_a_stream_is_not_swallowed(self):
        class Shape:
            def first_chunk(self, index):
                raise RuntimeError("a mistake of ours")

            def envelope(self, choices, *, is_chunk):
                return {"choices": choices}

        class NoChoices:
            tallies = (None,)

        async def end():
            ended.append(True)

        async def never():
            await asyncio.Event().wait()

        async def send(message):
            del message
        ended = []
        stream = serving.EventStream(serving.events(NoChoices(), Shape(), 1, serving.Extras()), [], 60, end)
        with self.assertRaisesRegex(RuntimeError, "a mistake of ours"):
            await stream({}, never, send)
        self.assertEqual(ended, [True])

    async def test_a_body_that_does_not_arrive_is_given_up(self):
        application = self.over(Stub(), body_seconds=0.01)
        status, _, body = await self.ask(application, {"type": "http.request", "body": b"{", "more_body": True})
        self.assertEqual((status, json.loads(body)["error"]["type"]), (408, "timeout"))
        self.assertTrue(self.gateway.idle.is_set())

    async def test_a_refusal_has_the_requests_id(self):
        status, headers, _ = await self.ask(self.over(Stub()), self.request(tmeperature=1),
                                            headers=[(b"x-request-id", b"mine-7")])
        self.assertEqual((status, headers["x-request-id"]), (400, "mine-7"))

    async def test_readers_see_no_address_of_ours(self):
        lost = grpc.aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, grpc.aio.Metadata(), grpc.aio.Metadata(),
                                    details="failed to connect to all addresses; last error: ipv4:10.1.2.3:7000")
        with self.assertLogs("outrider_gateway.generation", "WARNING") as logs:
            status, headers, body = await self.ask(self.over(Stub(lost)), self.request())
        self.assertEqual((status, headers["retry-after"]), (503, "1"))
        self.assertIn("try again later", json.loads(body)["error"]["message"])
        self.assertNotIn("10.1.2.3", body.decode())
        self.assertIn("10.1.2.3", logs.output[0])

    async def calls_made_for(self, failure, *, stream=False):
        """How often OpenAI's client calls, which sends a request once more after a status of 5xx."""
        stub = Stub(failure)
        transport = httpx2.ASGITransport(self.over(stub))
        async with openai.AsyncOpenAI(base_url="http://gateway/v1", api_key="none", max_retries=1,
                                      http_client=httpx2.AsyncClient(transport=transport)) as client:
            with self.assertRaises(openai.InternalServerError), self.assertLogs("outrider_gateway.generation"):
                await client.completions.create(**ASKED, stream=stream)
        return stub.num_calls

    async def test_a_request_that_verifiers_died_of_is_not_sent_again(self):
        poison = failed(error_details_pb2.ErrorInfo(reason="POISON", domain="outrider"))
        for stream in False, True:
            self.assertEqual(await self.calls_made_for(poison, stream=stream), 1)

    async def test_what_another_failure_ends_is_left_to_its_client(self):
        for other in (error_details_pb2.ErrorInfo(reason="POISON", domain="elsewhere"),
                      error_details_pb2.ErrorInfo(reason="ANOTHER", domain="outrider")):
            self.assertEqual(await self.calls_made_for(failed(other)), 2)

    async def test_requests_are_counted_by_endpoint_and_status(self):
        text = pb.GenerateResponse(tokens=[pb.GeneratedToken(id=1, text="x")],
                                   start=pb.GenerationStart(seed=1, prompt_length=1),
                                   finish=pb.GenerationFinish(reason=pb.FINISH_REASON_LENGTH))
        counter = app.METRICS.requests.labels("/v1/completions", "200")
        before = counter._value.get()
        status, _, body = await self.ask(self.over(Stub(text)), self.request())
        self.assertEqual((status, json.loads(body)["choices"][0]["text"]), (200, "x"))
        self.assertEqual(counter._value.get(), before + 1)

    def test_every_status_of_grpc_is_one_of_http(self):
        for code in grpc.StatusCode:
            if code is grpc.StatusCode.OK:
                continue
            refusal = errors.from_rpc(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata()))
            self.assertTrue(400 <= refusal.status < 600 and refusal.message, code)
            self.assertEqual(refusal.retry_after is not None, refusal.status in (429, 503), code)

    def refused(self, details):
        """A full coordinator's refusal, with these bytes as grpc-status-details-bin."""
        return errors.from_rpc(grpc.aio.AioRpcError(
            grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.aio.Metadata(),
            grpc.aio.Metadata(("grpc-status-details-bin", details)), details="full"))

    def test_a_delay_that_a_coordinator_asks_for_is_the_readers(self):
        status = status_pb2.Status(code=8, message="full")
        retry = error_details_pb2.RetryInfo()
        retry.retry_delay.FromMilliseconds(2500)
        status.details.add().Pack(retry)
        self.assertEqual(self.refused(status.SerializeToString()).response().headers["retry-after"], "3")

    def test_status_details_that_cannot_be_change_no_refusal(self):
        def details(value):
            status = status_pb2.Status(code=8, message="full")
            status.details.add(type_url="type.googleapis.com/google.rpc.RetryInfo", value=value)
            return status.SerializeToString()
        endless, negative = error_details_pb2.RetryInfo(), error_details_pb2.RetryInfo()
        endless.retry_delay.seconds, negative.retry_delay.seconds = 1 << 60, -1
        for garbage in (b"\xff not a message", status_pb2.Status(code=5).SerializeToString(), details(b"\xff"),
                        details(endless.SerializeToString()), details(negative.SerializeToString())):
            with self.subTest(garbage):
                refusal = self.refused(garbage)
                self.assertEqual((refusal.status, refusal.message), (429, "full"))
                self.assertGreaterEqual(int(refusal.response().headers["retry-after"]), 1)


if __name__ == "__main__":
    unittest.main()
