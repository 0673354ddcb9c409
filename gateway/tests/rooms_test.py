# SPDX-License-Identifier: Apache-2.0
"""How long texts may be: by what verifiers have a context for, and memory."""
import asyncio
import json
import unittest
from unittest import mock

import grpc
from stand_ins import ASKED, Reader, Stub, gateway, http_request, node, over, rpc_error, word

from outrider_gateway import app, served_model
from outrider_gateway.rooms import Rooms, room_of
from outrider_gateway.served_model import ServedModel

# A coordinator says so of a text for which no verifier that is ready has the memory.
WORDS = ("the text takes a cache of 600 tokens and those that continue it, and the verifiers that are ready have "
         "memory for 512; send less")
OUT_OF_MEMORY = rpc_error(grpc.StatusCode.FAILED_PRECONDITION, WORDS, reason="OUT_OF_KV_MEMORY",
                          num_tokens="600")
SMALL, LARGE = node(kv_cache_tokens=512), node(kv_cache_tokens=4096)


class RoomsTest(unittest.TestCase):
    def test_a_text_ends_with_the_context_or_with_the_memory(self):
        self.assertEqual([room_of(one) for one in (SMALL, LARGE, node(), node(context_length=0))],
                         [512, 1024, 1024, 0])

    def test_a_verifier_of_late_counts_and_one_of_long_ago_does_not(self):
        rooms = Rooms()
        rooms.note([LARGE], 0)
        for now, longest in (500, 1024), (700, 512):
            rooms.note([SMALL], now)
            self.assertEqual(rooms.longest("m"), longest)

    def test_each_model_has_its_own(self):
        rooms = Rooms()
        rooms.note([SMALL, node(model_name="other")], 0)
        self.assertEqual([rooms.longest(name) for name in ("m", "other", "third")], [512, 1024, 0])


class TooLongTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.now = 100.0
        clock = mock.patch.object(served_model, "time", mock.Mock(monotonic=lambda: self.now))
        clock.start()
        self.addCleanup(clock.stop)

    async def longest(self, *stubs):
        model = ServedModel(over(*stubs), "", None)
        await model.name()
        for _ in range(20):  # what the others say is heard, too
            await asyncio.sleep(0)
        self.now += 3
        await model.name()
        for _ in range(20):
            await asyncio.sleep(0)
        return model.longest_text()

    async def refused(self, *stubs, first=None):
        """The answer to a text that these refuse; `first` is what was described before."""
        door = gateway(*stubs, options=app.Options())
        application = app.create_app(door, with_metrics=False)
        if first is not None:
            now, stubs[0].verifiers = stubs[0].verifiers, first
            await door._model.name()
            stubs[0].verifiers = now
        reader = Reader(application, http_request({"model": "m", "prompt": "x" * 4000}))
        await reader.ask()
        return reader

    async def test_the_longest_of_all_verifiers_of_all_coordinators_counts(self):
        self.assertEqual(await self.longest(Stub(verifiers=[SMALL])), 512)
        self.assertEqual(await self.longest(Stub(verifiers=[SMALL, LARGE])), 1024)
        self.assertEqual(await self.longest(Stub(verifiers=[SMALL]), Stub(verifiers=[LARGE])), 1024)

    async def test_the_list_of_models_has_it(self):
        application = app.create_app(gateway(Stub(verifiers=[SMALL])), with_metrics=False)
        _, _, body = await Reader(application, http_request(b""), path="/v1/models", method="GET").ask()
        self.assertEqual(json.loads(body)["data"][0]["max_model_len"], 512)

    async def test_token_ids_beyond_all_memory_are_refused_by_the_gateway(self):
        stub = Stub(word(), verifiers=[SMALL])
        application = app.create_app(gateway(stub, options=app.Options()), with_metrics=False)
        for length, status in (512, 400), (511, 200):
            reader = Reader(application, http_request({"model": "m", "prompt": [5] * length}))
            self.assertEqual((await reader.ask())[0], status)
        self.assertEqual(stub.num_calls, 1)

    async def test_a_text_beyond_all_memory_is_too_long(self):
        stubs = [Stub(OUT_OF_MEMORY, verifiers=[SMALL]) for _ in range(2)]
        reader = await self.refused(*stubs)
        self.assertEqual((reader.status, reader.error["code"], reader.error["param"]),
                         (400, "context_length_exceeded", "prompt"))
        self.assertEqual(reader.error["message"], f"This model's maximum context length is 512 tokens here: {WORDS}")
        self.assertEqual([stub.num_calls for stub in stubs], [1, 1])

    async def test_a_text_for_which_somebody_may_have_the_memory_again_is_to_be_sent_again(self):
        refuses = Stub(OUT_OF_MEMORY, verifiers=[SMALL])
        with self.subTest("a verifier that was there has more"):
            self.assert_later(await self.refused(refuses, first=[LARGE]))
        for name, verifiers in (("silent", rpc_error(grpc.StatusCode.UNAVAILABLE)), ("without verifiers", [])):
            with self.subTest(f"another coordinator is {name}"):
                self.assert_later(await self.refused(refuses, Stub(OUT_OF_MEMORY, verifiers=verifiers)))

    async def test_a_text_that_somebody_refused_for_another_reason_is_to_be_sent_again(self):
        for code in grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE:
            for large in LARGE, SMALL:
                for is_last in False, True:
                    with self.subTest(code.name, is_large=large is LARGE, is_last=is_last):
                        stubs = Stub(rpc_error(code), verifiers=[large]), Stub(OUT_OF_MEMORY, verifiers=[SMALL])
                        door = gateway(*stubs)
                        list(door._parts.coordinators._nodes.values())[not is_last].num_streams += 1
                        reader = Reader(app.create_app(door, with_metrics=False), http_request(ASKED))
                        await reader.ask()
                        self.assertEqual([stub.num_calls for stub in stubs], [1, 1])
                        self.assertIn(reader.status, (429, 503))
                        self.assertIn("retry-after", reader.headers)

    async def test_a_text_that_a_verifier_which_is_back_has_room_for_is_to_be_sent_again(self):
        for verifier, status in (LARGE, 503), (node(kv_cache_tokens=600), 400):
            with self.subTest(room_of(verifier)):
                verifiers = [SMALL]

                async def come_back(verifiers=verifiers, verifier=verifier):
                    verifiers.append(verifier)
                reader = await self.refused(Stub(come_back, OUT_OF_MEMORY, verifiers=verifiers))
                self.assertEqual(reader.status, status)

    async def test_a_text_of_unknown_length_is_to_be_sent_again(self):
        why = rpc_error(grpc.StatusCode.FAILED_PRECONDITION, "no memory", reason="OUT_OF_KV_MEMORY")
        self.assertEqual((await self.refused(Stub(why, verifiers=[SMALL]))).status, 503)

    def assert_later(self, reader):
        self.assertEqual((reader.status, reader.headers["retry-after"]), (503, "1"))
        self.assertEqual((reader.error["message"], reader.error["code"]), (WORDS, "out_of_kv_memory"))

    async def test_refusals_that_come_together_are_told_apart_by_one_question(self):
        stub = Stub(OUT_OF_MEMORY, verifiers=[SMALL])
        application = app.create_app(gateway(stub, options=app.Options(model_name="m")), with_metrics=False)
        readers = [Reader(application, http_request({"model": "m", "prompt": "x"})) for _ in range(8)]
        await asyncio.gather(*(reader.ask() for reader in readers))
        self.assertEqual([reader.status for reader in readers], [400] * 8)
        self.assertLessEqual(stub.num_described, 2)

    async def test_a_stream_that_has_begun_is_never_the_callers_mistake(self):
        stub = Stub(word(finish=False), OUT_OF_MEMORY, verifiers=[SMALL])
        application = app.create_app(gateway(stub, options=app.Options()), with_metrics=False)
        reader = Reader(application, http_request({"model": "m", "prompt": "x", "max_tokens": 9}))
        with mock.patch("outrider_gateway.generation.RESUME_SECONDS", 0), \
                self.assertLogs("outrider_gateway.generation", "WARNING"):
            await reader.ask()
        self.assert_later(reader)


if __name__ == "__main__":
    unittest.main()
