# SPDX-License-Identifier: Apache-2.0
"""The application by itself, called as servers call it: what goes wrong is said in one shape, and bounded."""
import asyncio
import json
import unittest
from unittest import mock

import grpc
import httpx2
import openai
import prometheus_client
from google.rpc import error_details_pb2, status_pb2
from stand_ins import ASKED, Reader, Stub, gateway, http_request, never, rpc_error, word

from outrider_gateway import app, requests
from outrider_gateway.bodies import BodyLimits
from outrider_gateway.metrics import METRICS, Metrics
from outrider_gateway.rpc_errors import from_rpc


def failed(detail):
    """INTERNAL, with this detail."""
    status = status_pb2.Status(code=grpc.StatusCode.INTERNAL.value[0], message="failed")
    status.details.add().Pack(detail)
    return grpc.aio.AioRpcError(
        grpc.StatusCode.INTERNAL, grpc.aio.Metadata(),
        grpc.aio.Metadata(("grpc-status-details-bin", status.SerializeToString())), details="failed")


class AppTest(unittest.IsolatedAsyncioTestCase):
    def over(self, *stubs, **options):
        self.gateway = gateway(*stubs, options=app.Options(model_name="m", **options))
        return app.create_app(self.gateway, with_metrics=True)

    async def ask(self, application, *received, **changes):
        """(status, headers, body)."""
        self.reader = Reader(application, *received, **changes)
        return await self.reader.ask()

    def request(self, **changes):
        return http_request(ASKED | changes)

    async def test_a_mistake_of_ours_has_the_shape_of_other_refusals_and_is_logged(self):
        application = self.over(Stub())
        self.gateway._check_logprobs = None
        with self.assertRaises(TypeError):  # for the server's log
            await self.ask(application, self.request())
        self.assertEqual(self.reader.status, 500)
        self.assertEqual(set(self.reader.error), {"message", "type", "param", "code"})
        self.assertEqual(len(self.reader.headers["x-request-id"]), 16)

    async def test_a_body_that_does_not_arrive_is_given_up(self):
        application = self.over(Stub(), bodies=BodyLimits(seconds=0.01))
        status, _, _ = await self.ask(application, http_request(b"{", more_body=True))
        self.assertEqual((status, self.reader.error["type"]), (408, "timeout"))
        self.assertTrue(self.gateway.admission.idle.is_set())

    async def test_a_body_that_is_announced_to_be_too_large_is_refused_before_it_comes(self):
        application = self.over(Stub(), bodies=BodyLimits(most_bytes=10))
        status, _, _ = await self.ask(application, headers=[(b"content-length", b"11"), (b"expect", b"100-continue")])
        self.assertEqual((status, self.reader.error["code"]), (413, "request_too_large"))

    async def test_bodies_that_are_too_many_together_wait_for_others_to_end(self):
        limits = BodyLimits(most_bytes_together=4000, free_bytes=1000)
        application = self.over(Stub(word()), bodies=limits)
        with self.gateway._bodies.hold() as other:
            other.grow(2500)  # of which 1500 count
            status, headers, _ = await self.ask(application, self.request(prompt="x" * 3000))
            self.assertEqual((status, headers["retry-after"]), (429, "1"))
            self.assertEqual((await self.ask(application, self.request()))[0], 200)  # as the first bytes are free
            # Each choice has a copy.
            self.assertEqual((await self.ask(application, self.request(prompt="x" * 500, n=8)))[0], 429)
        self.assertEqual((await self.ask(application, self.request(prompt="x" * 3000)))[0], 200)
        self.assertEqual(self.gateway._bodies.num_bytes, 0)

    async def test_what_a_body_is_made_of_counts_with_it_until_it_has_been_checked(self):
        chat = {"model": "m", "messages": [{"role": "user", "content": "x", "junk": [[]] * 1000}]}
        application = self.over(Stub(), bodies=BodyLimits(most_bytes_together=100_000, free_bytes=0))
        status, _, _ = await self.ask(application, http_request(chat), path="/v1/chat/completions")
        self.assertEqual((status, self.reader.error["code"]), (429, "rate_limit_exceeded"))

    async def test_what_arguments_of_a_call_are_made_of_counts_too(self):
        call = {"function": {"name": "f", "arguments": json.dumps({"a": [[]] * 1000})}}
        chat = {"model": "m", "messages": [{"role": "assistant", "content": "x", "tool_calls": [call]}]}
        application = self.over(Stub(), bodies=BodyLimits(most_bytes_together=100_000, free_bytes=0))
        status, _, _ = await self.ask(application, http_request(chat), path="/v1/chat/completions")
        self.assertEqual((status, self.reader.error["code"]), (429, "rate_limit_exceeded"))

    async def test_what_is_mostly_structure_is_refused_before_it_is_taken_apart(self):
        chat = {"model": "m", "messages": [{"role": "user", "content": "x", "junk": [[]] * 100_000}]}
        with mock.patch.object(requests, "parse") as parse:
            status, _, _ = await self.ask(self.over(Stub()), http_request(chat), path="/v1/chat/completions")
        self.assertEqual((status, parse.call_count), (400, 0))
        self.assertIn("lists, objects and values", self.reader.error["message"])

    async def bytes_held_of(self, **changes):
        """What is counted of a request while it runs."""
        application = self.over(Stub(word(finish=False), never), bodies=BodyLimits(free_bytes=0))
        reader = Reader(application, self.request(stream=True, **changes))
        asking = asyncio.create_task(reader.ask())
        await reader.until(lambda: any(one.get("body") for one in reader.sent))
        held = self.gateway._bodies.num_bytes
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return held

    async def test_while_a_request_runs_its_prompts_count_and_not_its_body(self):
        self.assertLess(await self.bytes_held_of(user="y" * 100_000), 100)
        self.assertTrue(100_000 < await self.bytes_held_of(prompt="x" * 100_000) < 101_000)
        self.assertTrue(400_000 < await self.bytes_held_of(prompt="x" * 100_000, n=4) < 401_000)
        self.assertTrue(500_000 < await self.bytes_held_of(prompt="x" * 100_000, n=4, echo=True) < 501_000)
        self.assertTrue(40_000 < await self.bytes_held_of(prompt=[1000] * 10_000) < 41_000)

    async def test_the_page_is_in_no_frame_and_sends_nothing_elsewhere(self):
        _, headers, _ = await self.ask(self.over(Stub()), http_request(b""), path="/", method="GET")
        policy = headers["content-security-policy"].split("; ")
        for directive in "default-src", "frame-ancestors", "base-uri", "form-action":
            self.assertIn(f"{directive} 'none'", policy)

    async def test_choices_of_one_prompt_differ_in_their_seeds_alone_and_it_is_translated_once(self):
        stub = Stub(word())
        with mock.patch.object(app, "to_generate_request", wraps=app.to_generate_request) as translate:
            status, _, _ = await self.ask(self.over(stub), self.request(n=3, seed=(1 << 64) - 2, prompt=["p", "q"]))
        self.assertEqual((status, translate.call_count), (200, 2))
        self.assertEqual(sorted((one.text, one.seed) for one in stub.requests),
                         [(text, seed) for text in "pq" for seed in (0, (1 << 64) - 2, (1 << 64) - 1)])

    async def test_a_request_takes_its_seconds_from_its_arrival_and_not_after_its_body(self):
        class Timed(Stub):
            def Generate(self, request, *, timeout, **_):
                timeouts.append(timeout)
                return super().Generate(request)
        timeouts = []
        body = self.request()["body"]
        reader = Reader(self.over(Timed(word()), request_seconds=100))

        async def receive_late():
            await asyncio.sleep(0.1)
            return http_request(body)
        reader._receive = receive_late
        await reader.ask()
        self.assertTrue(90 < timeouts[0] < 99.95, timeouts)

    async def test_every_answer_has_the_requests_id_and_every_refusal_a_code(self):
        mine = {"headers": [(b"x-request-id", b"mine-7")]}
        for received, changes, status in ((self.request(), {}, 200), (self.request(tmeperature=1), {}, 400),
                                          (self.request(), {"path": "/v1/unknown"}, 404),
                                          (self.request(), {"path": "/v1/models"}, 405),
                                          (http_request(b" " * 99), {}, 413)):
            application = self.over(Stub(word()), bodies=BodyLimits(most_bytes=98))
            found, headers, _ = await self.ask(application, received, **mine, **changes)
            self.assertEqual((found, headers["x-request-id"]), (status, "mine-7"))
            self.assertTrue(status == 200 or self.reader.error["code"], status)
        _, headers, _ = await self.ask(application, http_request(b""), path="/v1/models", method="PUT")
        self.assertEqual(set(headers["allow"].split(", ")), {"GET", "HEAD"})

    async def test_a_name_that_cannot_stand_in_a_log_is_not_the_requests_id(self):
        _, headers, _ = await self.ask(self.over(Stub(word())), self.request(),
                                       headers=[(b"x-request-id", b"a\nforged line")])
        self.assertRegex(headers["x-request-id"], "^[0-9a-f]{16}$")

    async def test_each_request_is_a_line_in_the_log_without_its_text(self):
        with self.assertLogs("outrider_gateway.observing", "INFO") as logs:
            await self.ask(self.over(Stub(word())), self.request(prompt="secret", n=2),
                           headers=[(b"x-request-id", b"mine-7")])
            await self.ask(self.over(Stub()), http_request(b""), path="/live", method="GET")
        self.assertEqual(len(logs.output), 1)
        self.assertRegex(logs.output[0], "POST /v1/completions status=200 key=anyone prompt_tokens=1 "
                                         r"completion_tokens=2 seconds=\d+\.\d+ request_id=mine-7$")
        self.assertNotIn("secret", logs.output[0])

    async def test_an_error_in_a_stream_is_logged_and_counted_although_its_status_is_200(self):
        failed_before = METRICS.streams_failed.labels("503")._value.get()
        lost = rpc_error(grpc.StatusCode.INTERNAL)
        counted = METRICS.streams_failed.labels("500")
        before = counted._value.get()
        with self.assertLogs("outrider_gateway", "INFO") as logs:
            status, _, body = await self.ask(self.over(Stub(word(finish=False), lost)), self.request(stream=True))
        self.assertEqual(status, 200)
        self.assertTrue(body.endswith(b'"code":"internal"}}\n\ndata: [DONE]\n\n'), body)
        self.assertEqual(counted._value.get(), before + 1)
        self.assertEqual(METRICS.streams_failed.labels("503")._value.get(), failed_before)
        self.assertIn("status=200 error=500", logs.output[-1])
        self.assertRegex(logs.output[0], "a request failed at 10.1.2.3:7000.*request_id=[0-9a-f]{16}")

    async def test_times_and_prompts_are_counted(self):
        def sums():
            return (METRICS.request_seconds.labels("/v1/completions")._sum.get(), METRICS.prompt_tokens._value.get(),
                    METRICS.time_per_output_token._sum.get())

        async def pause():
            await asyncio.sleep(0.05)
        before = sums()
        arrived = METRICS.time_to_first_token._sum.get()
        await self.ask(self.over(Stub(pause, word(finish=False), pause, word(start=False, first_index=1))),
                       self.request())
        spent = [after - one for after, one in zip(sums(), before, strict=True)]
        self.assertGreaterEqual(spent[0], 0.1)
        self.assertEqual(spent[1], 1)
        self.assertTrue(0.04 < spent[2] < spent[0] < 5, spent)
        self.assertGreaterEqual(METRICS.time_to_first_token._sum.get() - arrived, 0.05)

    async def test_the_time_to_the_first_token_begins_with_the_request_and_not_after_its_body(self):
        body = self.request()["body"]
        before = METRICS.time_to_first_token._sum.get()
        reader = Reader(self.over(Stub(word())))

        async def receive_late():
            await asyncio.sleep(0.05)
            return http_request(body)
        reader._receive = receive_late
        await reader.ask()
        self.assertGreaterEqual(METRICS.time_to_first_token._sum.get() - before, 0.05)

    async def test_a_key_that_is_not_known_is_told_how_keys_are_sent(self):
        application = self.over(Stub())
        self.gateway._parts.keys._path = True  # so that keys are asked for
        self.gateway._parts.keys._look = lambda path: None
        status, headers, _ = await self.ask(application, self.request())
        self.assertEqual((status, headers["www-authenticate"]), (401, "Bearer"))

    async def test_readers_see_no_address_of_ours(self):
        lost = rpc_error(grpc.StatusCode.UNAVAILABLE,
                         "failed to connect to all addresses; last error: ipv4:10.1.2.3:7000")
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

    def test_what_alerts_look_for_is_counted_from_0_on(self):
        page = prometheus_client.generate_latest(Metrics().registry).decode()
        for status in ("500", "502", "503", "504"):
            self.assertIn(f'outrider_gateway_streams_failed_total{{status="{status}"}} 0.0\n', page)
            for route in ("/v1/completions", "/v1/chat/completions"):
                self.assertIn(f'outrider_gateway_requests_total{{route="{route}",status="{status}"}} 0.0\n', page)

    def test_its_process_is_measured_by_the_names_that_all_programs_have(self):
        page = prometheus_client.generate_latest(Metrics().registry).decode()
        for name in "start_time_seconds", "resident_memory_bytes", "open_fds":
            self.assertRegex(page, rf"(?m)^process_{name} [1-9]")

    async def test_requests_are_counted_by_route_and_status(self):
        counter = METRICS.requests.labels("/v1/completions", "200")
        before = counter._value.get()
        status, _, body = await self.ask(self.over(Stub(word())), self.request())
        self.assertEqual((status, json.loads(body)["choices"][0]["text"]), (200, "x"))
        self.assertEqual(counter._value.get(), before + 1)

    def test_every_status_of_grpc_is_one_of_http(self):
        for code in grpc.StatusCode:
            if code is grpc.StatusCode.OK:
                continue
            refusal = from_rpc(grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata()))
            self.assertTrue(400 <= refusal.status < 600 and refusal.message, code)
            self.assertEqual(refusal.retry_after is not None, refusal.status in (429, 503), code)

    def refused(self, details):
        """A full coordinator's refusal, with these bytes as grpc-status-details-bin."""
        return from_rpc(grpc.aio.AioRpcError(
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
                self.assertEqual(refusal.status, 429)
                self.assertIn("try again later", refusal.message)
                self.assertGreaterEqual(int(refusal.response().headers["retry-after"]), 1)


if __name__ == "__main__":
    unittest.main()
