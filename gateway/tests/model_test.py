# SPDX-License-Identifier: Apache-2.0
"""The model that coordinators serve: chats as its tokens, and what they say of it."""
import asyncio
import json
import threading
import unittest
from unittest import mock

import grpc
from stand_ins import MODEL, Reader, Stub, gateway, http_request, never, node, over, rpc_error, word

from outrider_gateway import app, requests, served_model
from outrider_gateway.chat_prompts import ChatPrompts
from outrider_gateway.chat_template import ChatTemplate
from outrider_gateway.errors import ApiError
from outrider_gateway.served_model import ServedModel
from outrider_gateway.tokens import Tokens


class ChatPromptsTest(unittest.IsolatedAsyncioTestCase):
    TOKENS = Tokens.load(MODEL)

    async def ids(self, template, longest_text, content="x", variables=()):
        prompts = ChatPrompts(ChatTemplate(template), self.TOKENS)
        return await prompts.ids([{"role": "user", "content": content}], add_generation_prompt=True,
                                 variables=dict(variables), longest_text=longest_text)

    async def test_a_chat_that_has_no_room_is_told_so_in_openais_words(self):
        for content, words in (("a b " * 2000, "your messages resulted in "), ("a b " * 500_000, "at least ")):
            with self.assertRaises(ApiError) as refusal:
                await self.ids("{{ messages[0].content }}", 1024, content)
            self.assertEqual(refusal.exception.param, "messages")
            self.assertEqual(refusal.exception.code, "context_length_exceeded")
            self.assertIn("maximum context length is 1024 tokens", refusal.exception.message)
            self.assertIn(words, refusal.exception.message)

    async def test_large_chats_wait_for_each_other(self):
        num_at_once, most = 0, 0
        lock = threading.Lock()

        def encode(text):
            nonlocal num_at_once, most
            with lock:
                num_at_once += 1
                most = max(most, num_at_once)
            ids = encode_before(text)
            with lock:
                num_at_once -= 1
            return ids
        encode_before = self.TOKENS.encode
        prompts = ChatPrompts(ChatTemplate("{{ messages[0].content }}"), self.TOKENS)
        with mock.patch.object(self.TOKENS, "encode", encode):
            lengths = [len(ids) for ids in await asyncio.gather(*(
                prompts.ids([{"role": "user", "content": "a b " * 20_000}], add_generation_prompt=True, variables={},
                            longest_text=1 << 20) for _ in range(4)))]
        self.assertEqual((len(set(lengths)), most), (1, 1))


class Slow(Stub):
    """A coordinator that thinks before it describes itself."""

    pause = 0.02

    async def Describe(self, request, **_):
        await asyncio.sleep(self.pause)
        return await super().Describe(request)


class ServedModelTest(unittest.IsolatedAsyncioTestCase):
    TOKENS = Tokens.load(MODEL)
    RIGHT = {"vocab_size": TOKENS.vocab_size, "tokenizer_hash": TOKENS.fingerprint}  # noqa: RUF012
    WRONG = {**RIGHT, "tokenizer_hash": "b" * 64}  # noqa: RUF012

    def setUp(self):
        self.now = 100.0
        clock = mock.patch.object(served_model, "time", mock.Mock(monotonic=lambda: self.now))
        clock.start()
        self.addCleanup(clock.stop)

    async def settle(self):
        """Lets what was begun beside a request come to its end."""
        for _ in range(20):
            await asyncio.sleep(0)

    async def test_a_model_that_takes_the_place_of_another_is_known_within_seconds(self):
        stub = Stub(verifiers=[node(model_name="first", context_length=10)])
        model = ServedModel(over(stub), "", None)
        self.assertEqual((await model.name(), model.longest_text()), ("first", 10))
        stub.verifiers = [node(model_name="second", context_length=20)]
        self.now += 6
        self.assertEqual(await model.name(), "first")  # which nobody waits to hear otherwise
        await self.settle()
        self.assertEqual((await model.name(), model.longest_text()), ("second", 20))
        self.assertEqual(stub.num_described, 2)

    async def test_what_is_known_stays_where_nobody_answers(self):
        stub = Stub()
        model = ServedModel(over(stub), "", None)
        await model.name()
        for verifiers in [], rpc_error(grpc.StatusCode.UNAVAILABLE):
            stub.verifiers = verifiers
            self.now += 6
            self.assertEqual(await model.name(), "m")
            await self.settle()
            self.assertIsNotNone(await model.problem())
        self.assertEqual(await model.name(), "m")

    async def test_a_model_that_nobody_has_described_is_not_served(self):
        for stub, words in ((Stub(verifiers=[]), "no verifier is ready"),
                            (Stub(verifiers=rpc_error(grpc.StatusCode.UNAVAILABLE)), "no coordinator answers")):
            model = ServedModel(over(stub), "", None)
            with self.assertRaisesRegex(ApiError, words) as refusal:
                await model.name()
            self.assertEqual(refusal.exception.status, 503)
            self.assertEqual(await model.problem(), words)

    async def test_of_several_coordinators_one_that_hangs_or_is_empty_is_not_waited_for(self):
        class Hanging(Stub):
            async def Describe(self, request, **_):
                await never()
        model = ServedModel(over(Hanging(), Stub(verifiers=[]), Stub()), "", None)
        async with asyncio.timeout(5):
            self.assertIsNone(await model.problem())

    async def test_a_tokenizer_of_another_model_is_never_healthy_and_serves_no_chats(self):
        tokens = Tokens.load(MODEL)
        right = {"vocab_size": tokens.vocab_size, "tokenizer_hash": tokens.fingerprint}
        stub = Stub(word())
        one = gateway(stub, options=app.Options(model_name="m"), tokens=tokens,
                      template=ChatTemplate("{{ messages[0].content }}"))
        application = app.create_app(one, with_metrics=False)

        async def statuses():
            self.now += 10
            health = await Reader(application, http_request(b""), path="/health", method="GET").ask()
            chat = await Reader(application, http_request(
                {"model": "m", "messages": [{"role": "user", "content": "x"}]}), path="/v1/chat/completions").ask()
            return health[0], chat[0]
        for wrong, word_of_it in (({"vocab_size": 7}, "4096 tokens"), ({"tokenizer_hash": "b" * 64}, "bbbb")):
            stub.verifiers = [node(**{**right, **wrong})]
            with self.assertLogs("outrider_gateway.served_model", "ERROR") as logs:
                self.assertEqual(await statuses(), (503, 503))
                self.assertEqual(await statuses(), (503, 503))
            self.assertEqual(len(logs.output), 1)
            self.assertIn(word_of_it, logs.output[0])
        for fitting in right, {}, {"vocab_size": tokens.vocab_size}:  # older nodes say less
            stub.verifiers = [node(**fitting)]
            self.assertEqual(await statuses(), (200, 200))

    def chats(self, *stubs):
        """A function that asks for a chat and returns the status, and these coordinators behind it."""
        self.gateway = gateway(*stubs, options=app.Options(model_name="m"), tokens=self.TOKENS,
                               template=ChatTemplate("{{ messages[0].content }}"))
        application = app.create_app(self.gateway, with_metrics=False)

        async def ask():
            self.reader = Reader(application, http_request(
                {"model": "m", "messages": [{"role": "user", "content": "x"}]}), path="/v1/chat/completions")
            return (await self.reader.ask())[0]
        return ask

    async def test_a_chat_does_not_go_by_what_was_said_of_the_tokenizer_long_ago(self):
        stub = Slow(word(), verifiers=[node(**self.RIGHT)])
        ask = self.chats(stub)
        self.assertEqual(await ask(), 200)
        stub.verifiers = [node(**self.WRONG)]
        self.now += 6
        with self.assertLogs("outrider_gateway.served_model", "ERROR"):
            with self.assertRaises(ApiError):  # at the first check already, before the prompt is made
                await self.gateway._model.check_tokenizer()
            self.assertEqual(await ask(), 503)
        self.assertIn("how they differ", self.reader.error["message"])
        stub.verifiers = [node(**self.RIGHT)]
        self.assertEqual((await ask(), stub.num_calls), (200, 2))
        for verifiers, words in ([], "no verifier"), (rpc_error(grpc.StatusCode.UNAVAILABLE), "no coordinator"):
            stub.verifiers = verifiers
            self.now += 6
            self.assertEqual(await ask(), 503)
            self.assertIn(words, self.reader.error["message"])

    async def test_chats_go_to_coordinators_with_the_same_tokenizer_alone(self):
        class Hanging(Stub):
            async def Describe(self, request, **_):
                await never()
        right, wrong, hanging = Stub(word(), verifiers=[node(**self.RIGHT)]), \
            Stub(word(), verifiers=[node(**self.WRONG)]), Hanging(word())
        for stubs in (right, wrong, hanging), (wrong, hanging, right):
            ask = self.chats(*stubs)
            for _ in range(20):
                self.now += 0.5
                self.assertEqual(await ask(), 200)
                self.assertIsNone(await self.gateway._model.problem())
        self.assertEqual((right.num_calls, wrong.num_calls, hanging.num_calls), (40, 0, 0))

    async def test_no_chat_goes_by_what_another_coordinator_said_long_ago(self):
        one, other = (Slow(word(), verifiers=[node(**self.RIGHT)]) for _ in range(2))
        ask = self.chats(one, other)
        self.assertEqual(await ask(), 200)
        await asyncio.sleep(2 * Slow.pause)
        nodes = {node.stub: node for node in self.gateway._parts.coordinators._nodes.values()}
        self.assertTrue(all(map(self.gateway._model.fits, nodes.values())))
        nodes[one].num_streams = 5  # so that it is asked last
        num_before = other.num_calls
        other.pause, other.verifiers = 1, [node(**self.WRONG)]
        self.now += 6
        self.assertEqual((await ask(), other.num_calls), (200, num_before))

    async def test_a_coordinator_that_has_come_meanwhile_is_asked_before_it_gets_a_chat(self):
        stub = Stub(word(), verifiers=[node(**self.RIGHT)])
        ask = self.chats(stub)
        self.assertEqual(await ask(), 200)
        new = Stub(word(), verifiers=[node(**self.RIGHT)])
        self.gateway._parts.coordinators._nodes = over(new)._nodes
        self.assertEqual((await ask(), new.num_described, new.num_calls), (200, 1, 1))

    async def test_a_chat_that_is_refused_is_tried_at_no_coordinator_with_another_tokenizer(self):
        full = Stub(rpc_error(grpc.StatusCode.RESOURCE_EXHAUSTED), verifiers=[node(**self.RIGHT)])
        wrong = Stub(word(), verifiers=[node(**self.WRONG)])
        self.assertEqual((await self.chats(full, wrong)(), wrong.num_calls), (429, 0))

    async def test_a_chat_that_was_begun_goes_on_whatever_is_known_of_tokenizers(self):
        async def forget():
            self.gateway._parts.coordinators.forget_descriptions()
        first = Stub(word(finish=False), forget, rpc_error(grpc.StatusCode.UNAVAILABLE),
                     verifiers=[node(**self.RIGHT)])
        second = Stub(word(start=False, first_index=1), verifiers=[node(**self.RIGHT)])
        ask = self.chats(first, second)
        for one in self.gateway._parts.coordinators._nodes.values():
            one.num_streams = 1 if one.stub is second else 0  # so that it is asked last
        with self.assertLogs("outrider_gateway.generation", "WARNING"):
            self.assertEqual((await ask(), first.num_calls, second.num_calls), (200, 1, 1))

    async def test_a_reader_who_leaves_while_its_chat_waits_is_not_waited_for(self):
        async def ids(*_, **__):
            is_waiting.append(True)
            await never()
        is_waiting = []
        self.chats(Stub(word(), verifiers=[node(**self.RIGHT)]))
        application = app.create_app(self.gateway, with_metrics=False)
        reader = Reader(application, http_request({"model": "m", "messages": [{"role": "user", "content": "x"}]}),
                        path="/v1/chat/completions")
        receive = reader._receive

        async def receive_or_leave():
            if reader._received:
                return await receive()
            while not is_waiting:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}
        reader._receive = receive_or_leave
        with mock.patch.object(self.gateway._chats, "ids", ids):
            async with asyncio.timeout(5):
                await reader.ask()
        self.assertEqual((reader.status, is_waiting), (499, [True]))
        self.assertTrue(self.gateway.admission.idle.is_set())

    async def test_scrapes_hear_what_health_says(self):
        stub = Stub(verifiers=rpc_error(grpc.StatusCode.UNAVAILABLE))
        door = gateway(stub)
        application = app.create_app(door, with_metrics=True)

        async def told():
            health, _, _ = await Reader(application, http_request(b""), path="/health", method="GET").ask()
            _, _, page = await Reader(application, http_request(b""), path="/metrics", method="GET").ask()
            return health, next(line for line in page.splitlines() if line.startswith(b"outrider_gateway_ready "))
        self.assertEqual(await told(), (503, b"outrider_gateway_ready 0.0"))
        stub.verifiers = []
        self.assertEqual(await told(), (503, b"outrider_gateway_ready 0.0"))
        stub.verifiers = [node()]
        self.assertEqual(await told(), (200, b"outrider_gateway_ready 1.0"))
        door.admission.is_draining = True
        self.assertEqual(await told(), (503, b"outrider_gateway_ready 0.0"))

    async def test_the_longest_text_is_in_the_list_of_models(self):
        for options in app.Options(), app.Options(model_name="m"):
            application = app.create_app(gateway(Stub(), options=options), with_metrics=False)
            for path in "/v1/models", "/v1/models/m":
                _, _, body = await Reader(application, http_request(b""), path=path, method="GET").ask()
                card, = json.loads(body).get("data") or [json.loads(body)]
                self.assertEqual(card["max_model_len"], 1024)

    async def test_the_list_of_models_does_not_need_a_coordinator_where_the_name_is_given(self):
        lost = Stub(verifiers=rpc_error(grpc.StatusCode.UNAVAILABLE))
        application = app.create_app(gateway(lost, options=app.Options(model_name="m")), with_metrics=False)
        status, _, body = await Reader(application, http_request(b""), path="/v1/models", method="GET").ask()
        self.assertEqual((status, json.loads(body)["data"][0]["max_model_len"]), (200, None))

    async def test_token_ids_without_room_are_refused_by_the_gateway(self):
        stub = Stub(word())
        application = app.create_app(gateway(stub, options=app.Options()), with_metrics=False)
        reader = Reader(application, http_request({"model": "m", "prompt": [5] * 1024}))
        await reader.ask()
        self.assertEqual((reader.status, reader.error["code"]), (400, "context_length_exceeded"))
        self.assertEqual(stub.num_calls, 0)

    async def test_far_too_many_token_ids_are_not_taken_apart(self):
        """All streams would stand still meanwhile."""
        served = gateway(Stub(), options=app.Options())
        await served._model.described()
        application = app.create_app(served, with_metrics=False)
        reader = Reader(application, http_request({"model": "m", "prompt": [5] * 100_000}))
        with mock.patch.object(requests, "parse") as parse:
            await reader.ask()
        self.assertEqual((reader.status, reader.error["code"], parse.call_count), (400, "context_length_exceeded", 0))

    async def test_token_ids_are_no_text_again_before_they_have_been_checked(self):
        application = app.create_app(gateway(Stub(word()), options=app.Options(), tokens=self.TOKENS),
                                     with_metrics=False)
        with mock.patch.object(self.TOKENS, "decode", wraps=self.TOKENS.decode) as decode:
            for prompt, model, status in ([5] * 1024, "m", 400), ([5], "other", 404), ([5], "m", 200):
                self.assertEqual(decode.call_count, 0)
                reader = Reader(application, http_request({"model": model, "prompt": prompt, "echo": True}))
                self.assertEqual((await reader.ask())[0], status)
        self.assertEqual(decode.call_count, 1)

    async def test_the_event_loop_goes_on_while_token_ids_are_made_text_again(self):
        def decode(ids):
            threads.append(threading.current_thread())
            return "text" * len(ids)
        threads = []
        application = app.create_app(gateway(Stub(word()), tokens=self.TOKENS), with_metrics=False)
        with mock.patch.object(self.TOKENS, "decode", decode):
            _, _, body = await Reader(application, http_request(
                {"model": "m", "prompt": [[5], [5, 6]], "echo": True})).ask()
        self.assertEqual([choice["text"] for choice in json.loads(body)["choices"]], ["textx", "texttextx"])
        self.assertEqual((len(threads), threading.current_thread() in threads), (2, False))


if __name__ == "__main__":
    unittest.main()
