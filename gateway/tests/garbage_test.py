# SPDX-License-Identifier: Apache-2.0
"""Bodies that nobody meant: whatever they are, they are answered or refused, and nothing fails on them."""
import json
import random
import unittest

import bad_requests
from stand_ins import MODEL, Reader, Stub, gateway, http_request, node, word

from outrider_gateway import app, request_errors, requests
from outrider_gateway.chat_template import ChatTemplate
from outrider_gateway.tokens import Tokens

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}{{ style }}"
ENDPOINTS = {"/v1/completions": (requests.CompletionRequest, bad_requests.GOOD_COMPLETION),
             "/v1/chat/completions": (requests.ChatRequest, bad_requests.GOOD_CHAT)}
NUM_BODIES = 2000  # of each kind at each endpoint
ODD_VALUES = [None, True, False, 0, 1, -1, 2, 1 << 31, 1 << 32, 1 << 63, 1 << 64, -(1 << 64), 10 ** 400, 0.5, -0.0,
              1e308, 5e-324, "", "x", "\0", "\u0663", "9" * 5000, "\U0010ffff", "\u202e", "auto", "greedy", "text",
              "user", "{{ 1 / 0 }}", [], {}, [[]], [None], {"": None}]
# What some parameter may nearly be.
NEAR_VALUES = [[1, 2], ["p", 5], [[1], [2]], [{"role": "user", "content": "x"}], {"5": 1}, {"9" * 5000: 1},
               {"\u0663": 1}, {"4294967296": 1}, {"include_usage": True}, {"num_speculative_tokens": 1 << 32},
               [{"role": "user", "content": [{"type": "text", "text": "x"}]}], [{"role": "x", "content": None}]]
ODD_NAMES = ["role", "content", "type", "text", "7", "\u0663", "9" * 5000, ""]
ODD_BYTES = [b"\0", b"\xff", b"\xed\xa0\x80", b"\\ud800", b"NaN", b"-Infinity", b"1e999", b"{", b"[", b'"', b",",
             b"\\"]


class GarbageTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self):
        self.random = random.Random(29)
        tokens = Tokens.load(MODEL)
        verifiers = [node(model_name="demo-target", vocab_size=tokens.vocab_size, tokenizer_hash=tokens.fingerprint)]
        one = gateway(Stub(word(), verifiers=verifiers), options=app.Options(model_name="demo-target"), tokens=tokens,
                      template=ChatTemplate(TEMPLATE))
        self.application = app.create_app(one, with_metrics=False)

    async def answer(self, path, body):
        """(status, body): what is raised instead fails the test."""
        status, _, reply = await Reader(self.application, http_request(body), path=path).ask()
        return status, reply

    async def check_refused(self, path, body):
        status, reply = await self.answer(path, body)
        self.assertTrue(400 <= status < 500, (status, reply, body[:200]))
        error = json.loads(reply)["error"]
        self.assertEqual(set(error), {"message", "type", "param", "code"})
        self.assertTrue(error["message"])

    async def check_answered_or_refused(self, path, body):
        status, reply = await self.answer(path, body)
        self.assertTrue(status == 200 or 400 <= status < 500, (status, reply, body[:200]))
        if status != 200:
            self.assertTrue(json.loads(reply)["error"]["message"], body[:200])
        return status

    def names(self, path):
        """The names of all parameters, those that are not served among them, and of one that does not exist."""
        return [*ENDPOINTS[path][0].model_fields, *request_errors.NOT_SERVED, "tmeperature"]

    def value(self, depth=0):
        """Any that JSON has."""
        kind = self.random.randrange(8 if depth < 3 else 4)
        if kind < 2:
            return self.random.choice(ODD_VALUES)
        if kind == 2:
            return self.random.choice(NEAR_VALUES)
        if kind == 3:
            return self.random.randrange(-3, 70)
        if kind < 6:
            return [self.value(depth + 1) for _ in range(self.random.randrange(4))]
        return {self.random.choice(ODD_NAMES): self.value(depth + 1) for _ in range(self.random.randrange(4))}

    def changed(self, good, names):
        """The request with some parameters that nobody meant."""
        asked = dict(good)
        for name in self.random.sample(names, self.random.choice([1, 1, 2, 3])):
            asked[name] = self.value()
        if self.random.random() < 0.1:
            asked.pop(self.random.choice(list(good)), None)
        return asked

    async def test_bytes_that_are_no_json_are_refused(self):
        for path in ENDPOINTS:
            for _ in range(NUM_BODIES):
                await self.check_refused(path, self.random.randbytes(self.random.randrange(200)))

    async def test_a_request_with_damaged_bytes_is_answered_or_refused(self):
        for path, (_, good) in ENDPOINTS.items():
            more = {"stop": ["a"], "logit_bias": {"5": 1}, "seed": 7, "temperature": 0.5}
            whole = json.dumps({**good, **more}).encode()
            for _ in range(NUM_BODIES):
                body = bytearray(whole)
                for _ in range(self.random.randrange(1, 4)):
                    at, length = self.random.randrange(len(body)), self.random.randrange(3)
                    body[at:at + length] = self.random.choice([*ODD_BYTES, self.random.randbytes(1)])
                await self.check_answered_or_refused(path, bytes(body))

    async def test_each_odd_value_of_each_parameter_is_answered_or_refused(self):
        for path, (_, good) in ENDPOINTS.items():
            for name in self.names(path):
                for value in ODD_VALUES + NEAR_VALUES:
                    await self.check_answered_or_refused(path, json.dumps({**good, name: value}).encode())

    async def test_parameters_that_nobody_meant_are_answered_or_refused(self):
        for path, (_, good) in ENDPOINTS.items():
            names = self.names(path)
            statuses = {await self.check_answered_or_refused(path, json.dumps(self.changed(good, names)).encode())
                        for _ in range(NUM_BODIES)}
            # Some of them can be meant: the test reaches what comes after the parser.
            self.assertTrue(statuses >= {200, 400}, statuses)

    async def test_values_that_are_no_object_are_refused(self):
        for path in ENDPOINTS:
            for value in ODD_VALUES:
                if value != {}:
                    await self.check_refused(path, json.dumps(value).encode())

    async def test_depth_without_end_is_refused(self):
        for path, (_, good) in ENDPOINTS.items():
            for opening in (b"[", b'{"a":'):
                await self.check_refused(path, opening * 100_000)
                for name in ("prompt", "messages", "chat_template_kwargs", "outrider"):
                    await self.check_refused(path, json.dumps({**good, name: 0}).encode()[:-2] + opening * 100_000)


if __name__ == "__main__":
    unittest.main()
