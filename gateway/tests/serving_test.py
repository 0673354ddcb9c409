# SPDX-License-Identifier: Apache-2.0
"""How answers begin, go on and end: choices that wait, readers who wait, a process that ends before they do."""
import asyncio
import json
import threading
import unittest
from unittest import mock

import grpc
from stand_ins import ASKED, MODEL, Reader, Stub, gateway, http_request, never, rpc_error, word

from outrider_gateway import answers, app, json_text, lingering, padding, replies, serving
from outrider_gateway.admission import Admission
from outrider_gateway.bodies import BodyLimits
from outrider_gateway.chat_template import ChatTemplate
from outrider_gateway.observing import Observation
from outrider_gateway.tokens import Tokens


class ServingTest(unittest.IsolatedAsyncioTestCase):
    def over(self, *stubs, **options):
        self.gateway = gateway(*stubs, options=app.Options(model_name="m", **options))
        self.application = app.create_app(self.gateway, with_metrics=False)

    def reader(self, **changes):
        return Reader(self.application, http_request({**ASKED, **changes}))

    async def begun(self, reader):
        """The task that asks, once something has been sent."""
        asking = asyncio.create_task(reader.ask())
        await reader.until(lambda: any(one.get("body") for one in reader.sent))
        return asking

    # ---- how they begin

    async def test_a_stream_begins_with_the_first_choice_that_has_begun(self):
        blocked = asyncio.Event()

        class Second(Stub):
            def Generate(self, request, **_):
                one = Stub(word()) if request.seed == 5 else Stub(blocked.wait, word())
                return one
        self.over(Second())
        reader = self.reader(n=2, seed=5, stream=True)
        asking = await self.begun(reader)
        self.assertIn(b'"index":0', reader.body)
        blocked.set()
        await asking
        self.assertIn(b'"index":1', reader.body)

    async def test_a_refusal_has_its_status_and_one_that_comes_late_is_an_event(self):
        full = rpc_error(grpc.StatusCode.RESOURCE_EXHAUSTED)

        async def wait():
            await asyncio.sleep(0.1)
        with mock.patch.object(serving.Choices.begin, "__defaults__", (0.05,)):
            for steps, status in ((full,), 429), ((wait, full), 200):
                self.over(Stub(*steps))
                found, _, body = await self.reader(stream=True).ask()
                self.assertEqual(found, status)
                self.assertIn(b"try again later", body)
            self.over(Stub(wait, word()))
            status, _, body = await self.reader(stream=True).ask()
            self.assertEqual(status, 200)
            self.assertIn(b'"text":"x"', body)

    async def test_a_reader_who_leaves_before_a_late_beginning_ends_the_session(self):
        self.over(Stub(never))
        reader = self.reader(stream=True)
        with mock.patch.object(serving.Choices.begin, "__defaults__", (0.01,)):
            asking = asyncio.create_task(reader.ask())
            await reader.until(lambda: reader.sent)
            self.assertEqual(reader.status, 200)
            node, = self.gateway._parts.coordinators._nodes.values()
            self.assertEqual(node.num_streams, 1)
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)
        self.assertEqual(node.num_streams, 0)

    # ---- how they go on

    async def test_a_silent_stream_shows_that_it_lives(self):
        may_go_on = asyncio.Event()
        self.over(Stub(word(finish=False), may_go_on.wait, word(start=False, first_index=1)))
        with mock.patch.object(answers, "PING_SECONDS", 0.02):
            reader = self.reader(stream=True)
            asking = await self.begun(reader)
            await reader.until(lambda: reader.body.count(b": ping\n\n") > 1)
            may_go_on.set()
            await asking
        events = [one for one in reader.body.split(b"\n\n") if not one.startswith(b":")]
        self.assertEqual(events[-2:], [b"data: [DONE]", b""])

    async def test_padded_events_are_of_one_size_whatever_their_texts(self):
        texts = "x", "word", "\U0001f600", "\u2028", "x" * 150, "x" * 200
        steps = [word(text, start=not i, first_index=i, finish=i == len(texts) - 1) for i, text in enumerate(texts)]
        for path, key in (("/v1/completions", "text"), ("/v1/chat/completions", "delta")):
            sizes = {}
            for is_padded in (False, True):
                self.gateway = gateway(Stub(*steps), tokens=Tokens.load(MODEL),
                                       template=ChatTemplate("{{ messages[0].content }}"))
                asked = {"model": "m", "stream": True, "stream_options": {
                    "include_usage": True, "include_obfuscation": is_padded}}
                asked |= {"prompt": "p"} if key == "text" else {"messages": [{"role": "user", "content": "x"}]}
                reader = Reader(app.create_app(self.gateway, with_metrics=False), http_request(asked), path=path)
                _, _, body = await reader.ask()
                events = body.split(b"\n\n")[:-2]
                chunks = [json.loads(event.removeprefix(b"data: ")) for event in events]
                self.assertEqual({"obfuscation" in chunk for chunk in chunks}, {is_padded})
                said = [one.get("text") or one.get("delta", {}).get("content") or ""
                        for chunk in chunks for one in chunk["choices"]]
                self.assertEqual("".join(said), "".join(texts))
                sizes[is_padded] = [len(event) for event in events]
            self.assertGreater(len(set(sizes[False])), 3)
            least, longest = sorted(set(sizes[True]))  # the text of 200 characters is alone, or with the usage
            self.assertEqual(longest - least, 256)
            self.assertLessEqual(sizes[True].count(longest), 2)

    def test_padding_is_not_to_be_guessed_and_fills_to_the_byte(self):
        for length in range(600):
            field = padding.padding("x" * length)
            self.assertEqual((length + len(field)) % 256, 0)
            self.assertLess(len(json.loads("{" + field[1:] + "}")["obfuscation"]), 256)
        self.assertNotEqual(padding.padding("x"), padding.padding("x"))

    async def test_nothing_follows_the_end_of_a_stream(self):
        sent = []

        async def send(message):
            sent.append(message)

        async def end():
            await send("the end")
        stream = answers.EventStream(None, None)
        stream._sent_at = 0  # long ago
        sending = asyncio.create_task(end())  # which ends after the tick, and before the ping
        stream._tick(sending, send)
        await asyncio.gather(sending, *stream._pings)
        self.assertEqual(sent, ["the end"])

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

        async def send(message):
            del message
        ended = []
        with Admission(1).request() as admitted:
            stream = answers.EventStream(answers.Served(admitted, Observation("x", 0), 60, end),
                                         serving.events(NoChoices(), Shape(), 1, serving.Extras()))
            with self.assertRaisesRegex(RuntimeError, "a mistake of ours"):
                await stream({}, never, send)
        self.assertEqual(ended, [True])

    async def test_a_large_reply_is_written_in_slices_and_runs_until_its_last_byte(self):
        text = "\u00fc" * 200_000
        self.over(Stub(word(text)))
        reader = self.reader()
        is_running = []

        async def send(message):
            reader.sent.append(message)
            is_running.append(not self.gateway.admission.idle.is_set())
        reader._send = send
        _, headers, body = await reader.ask()
        self.assertEqual(json.loads(body)["choices"][0]["text"], text)
        self.assertEqual(int(headers["content-length"]), len(body))
        self.assertGreater(len(is_running), 6)
        self.assertTrue(all(is_running))
        self.assertTrue(self.gateway.admission.idle.is_set())

    async def test_a_reply_of_many_details_is_written_while_the_loop_serves_others(self):
        async def written_by(num_tokens, **changes):
            message = word(finish=False)
            message.tokens.extend(message.tokens[:1] * (num_tokens - 1))
            message.finish.reason = 3
            self.over(Stub(message))
            self.gateway._parts.tokens = Tokens.load(MODEL)
            threads = []

            def choice(self, *words):
                threads.append(threading.current_thread())
                return choice_before(self, *words)
            choice_before = replies.CompletionShape.choice
            with mock.patch.object(replies.CompletionShape, "choice", choice):
                _, _, body = await self.reader(**changes).ask()
            self.assertEqual(len(json.loads(body)["choices"][0]["text"]), num_tokens)
            return threads[0]
        self.assertIsNot(await written_by(1000, logprobs=2), threading.main_thread())
        self.assertIsNot(await written_by(1000, outrider={"rounds": True}), threading.main_thread())
        self.assertIs(await written_by(1000), threading.main_thread())
        self.assertIs(await written_by(10, logprobs=2), threading.main_thread())

    async def test_of_several_choices_one_after_the_other_is_written(self):
        done = []

        def choice(self, *words):
            done.append("made")
            return choice_before(self, *words)

        def to_json(value):
            if "finish_reason" in value:
                done.append("written")
            return json_text.to_json(value)
        choice_before = replies.CompletionShape.choice
        self.over(Stub(word()))
        with mock.patch.object(replies.CompletionShape, "choice", choice), \
                mock.patch.object(serving, "to_json", to_json):
            _, _, body = await self.reader(n=3, outrider={"rounds": True}, return_token_ids=True).ask()
        self.assertEqual(done, ["made", "written"] * 3)
        reply = json.loads(body)
        self.assertEqual([one["index"] for one in reply["choices"]], [0, 1, 2])
        for one in reply["choices"]:
            self.assertEqual((one["text"], one["token_ids"], len(one["outrider"]["rounds"])), ("x", [1], 1))
        self.assertEqual((reply["usage"]["completion_tokens"], reply["outrider"]), (3, {"seed": 1}))

    async def test_details_of_a_whole_reply_find_room_or_are_refused(self):
        messages = [word(start=i == 0, finish=i == 49, first_index=i) for i in range(50)]
        limits = BodyLimits(most_bytes_together=50_000, free_bytes=0)
        for changes, status in (({}, 200), ({"logprobs": 5}, 429), ({"outrider": {"rounds": True}}, 429),
                                ({"logprobs": 5, "stream": True}, 200)):
            self.over(Stub(*messages), bodies=limits)
            self.gateway._parts.tokens = Tokens.load(MODEL)
            reader = self.reader(**changes)
            await reader.ask()
            self.assertEqual(reader.status, status, changes)
            if status == 429:
                self.assertIn("replies", reader.error["message"])
            self.assertEqual(self.gateway._bodies.num_bytes, 0)

    def test_text_in_parts_is_the_same_text(self):
        for value in ({}, [], {"a": []}, {"a": [{"b": 1}, {}], "c": "\u2028", "d": list(range(200))},
                      {"e": [{"f": [{"g": i} for i in range(130)]}] * 3}, [1, 2], "x", None):
            self.assertEqual("".join(json_text.in_parts(value)), json_text.to_json(value))
            self.assertEqual(json.loads(json_text.to_json(value)), value)

    # ---- how they end

    async def test_a_process_that_ends_tells_the_readers_of_streams(self):
        self.over(Stub(word(finish=False), never))
        reader = self.reader(stream=True)
        asking = await self.begun(reader)
        self.gateway.admission.is_draining = True
        self.gateway.admission.cut_off()
        await asking
        *_, error, done, end = reader.body.split(b"\n\n")
        self.assertEqual(json.loads(error.removeprefix(b"data: "))["error"]["code"], "draining")
        self.assertEqual((done, end), (b"data: [DONE]", b""))
        self.assertFalse(reader.sent[-1]["more_body"])
        self.assertTrue(self.gateway.admission.idle.is_set())

    @mock.patch.object(lingering, "_SILENT_SECONDS", 0.01)
    async def test_a_process_that_ends_tells_those_who_wait_for_a_reply(self):
        for received in (http_request(ASKED), http_request(b"{", more_body=True),
                         http_request({**ASKED, "stream": True})):
            self.over(Stub(never))
            reader = Reader(self.application, received, headers=[(b"expect", b"100-continue")])
            asking = asyncio.create_task(reader.ask())
            await asyncio.sleep(0.02)
            self.gateway.admission.is_draining = True
            self.gateway.admission.cut_off()
            status, headers, _ = await asking
            self.assertEqual((status, reader.error["code"], headers["connection"]), (503, "draining", "close"))

    async def test_a_request_that_is_cut_off_at_its_very_end_has_ended(self):
        async def events():
            try:
                yield b"x"
                await never()
            finally:
                is_ending.set()
                await asyncio.sleep(0.05)

        async def end():
            ended.append(True)

        async def send(message):
            del message

        async def receive():
            await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}
        ended, is_ending = [], asyncio.Event()

        async def answer():
            with Admission(1).request() as admitted:
                served = answers.Served(admitted, Observation("x", 0), 60, end)
                await answers.EventStream(served, events())({}, receive, send)
        answering = asyncio.create_task(answer())
        await is_ending.wait()
        answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        self.assertEqual(ended, [True])

    async def test_whoever_else_cancels_a_request_is_obeyed(self):
        self.over(Stub(never))
        asking = asyncio.create_task(self.reader().ask())
        await asyncio.sleep(0.02)
        asking.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await asking

    async def test_while_it_drains_every_answer_ends_its_connection(self):
        self.over(Stub(word()))
        for path, method in (("/v1/completions", "POST"), ("/live", "GET"), ("/nowhere", "GET")):
            for is_draining in (False, True):
                self.gateway.admission.is_draining = is_draining
                _, headers, _ = await Reader(self.application, http_request(ASKED), path=path, method=method).ask()
                self.assertEqual(headers.get("connection"), "close" if is_draining else None)


if __name__ == "__main__":
    unittest.main()
