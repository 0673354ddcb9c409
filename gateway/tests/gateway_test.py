# SPDX-License-Identifier: Apache-2.0
"""The gateway before real coordinators, asked by the real `openai` client, a browser's worth aside."""
import json
import pathlib
import re
import shutil
import signal
import socket
import sys
import threading
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "tests/integration")]
import make_stubs  # noqa: E402

make_stubs.main()

import openai  # noqa: E402
from programs import BIN, TARGET, Program, ProgramTest, wait_until  # noqa: E402

# The tokenizer's own first token is in the text, as in published templates.
CHAT_TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ m.content }}\n{% endfor %}"
                 "{% if add_generation_prompt %}def {% endif %}")
BOS = json.loads((TARGET / "tokenizer.json").read_text())["added_tokens"][0]["content"]
PROMPT = 'class Queue:\n    """A first-in, first-out queue."""\n\n    def __init__(self):\n'


class GatewayTest(ProgramTest):
    """One trio and a second coordinator for all cases; a gateway for each."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.programs = []
        cls.verifier = cls.launch("outrider-verifier", "--model", TARGET).address()
        cls.drafter = cls.launch("outrider-drafter", "--model", TARGET.parent / "demo-draft").address()
        cls.coordinator = cls.launch_coordinator().address()

    @classmethod
    def tearDownClass(cls):
        for program in cls.programs:
            program.close()

    @classmethod
    def launch(cls, name, *flags):
        cls.programs.append(Program(BIN / name, "--listen", "127.0.0.1:0", *flags))
        return cls.programs[-1]

    @classmethod
    def launch_coordinator(cls, *flags):
        return cls.launch("outrider-coordinator", "--verifier", cls.verifier, "--drafter", cls.drafter,
                          "--tokenizer", TARGET, *flags)

    def setUp(self):
        super().setUp()
        # The demo pair has no chat template: a copy of its tokenizer gets one.
        self.model = self.folder / "model"
        self.model.mkdir()
        shutil.copy(TARGET / "tokenizer.json", self.model)
        (self.model / "chat_template.jinja").write_text(CHAT_TEMPLATE)
        (self.model / "tokenizer_config.json").write_text(json.dumps({"bos_token": BOS}))

    def gateway(self, *flags, coordinators=None, model=None):
        endpoints = [word for one in coordinators or [self.coordinator] for word in ("--coordinator", one)]
        program = Program(sys.executable, "-B", "-m", "outrider_gateway.main", "--listen", "127.0.0.1:0",
                          "--model", model or self.model, *endpoints, *flags,
                          inside=("env", f"PYTHONPATH={HERE.parent}"))
        self.addCleanup(program.close)
        self.url = f"http://{program.address()}"
        wait_until("the gateway is healthy", self.is_healthy)
        return program

    def is_healthy(self):
        return self.status("/health") == 200

    def status(self, path, url=None):
        """Of a GET on a new connection; nothing where none is taken."""
        try:
            return urllib.request.urlopen((url or self.url) + path, timeout=5).status
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def client(self, key="none"):
        return openai.OpenAI(base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60)

    def spoken(self, *flags, prompt=PROMPT):
        """What `outrider generate` says."""
        program = self.generate(self.coordinator, *flags, prompt)
        self.assertEqual(program.wait(), 0, program.err())
        return program.out()

    # ---- equal texts

    def test_completions_are_those_of_outrider_generate_for_the_seed(self):
        self.gateway()
        coupled = {"outrider": {"acceptance_rule": "coupled"}}
        for temperature in (0, 1):
            expected = self.spoken("--temperature", str(temperature), "--seed", "7", "--max-tokens", "48",
                                   "--acceptance-rule", "coupled")
            reply = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=48, seed=7,
                                                     temperature=temperature, extra_body=coupled)
            self.assertEqual(reply.choices[0].text.strip("\n"), expected.strip("\n"))
            streamed = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=48, seed=7,
                                                        temperature=temperature, stream=True, extra_body=coupled)
            self.assertEqual("".join(chunk.choices[0].text for chunk in streamed), reply.choices[0].text)

    def test_chats_are_completions_of_the_rendered_template(self):
        self.gateway()
        messages = [{"role": "user", "content": "# sorts a list"}]
        settings = {"model": "demo-target", "temperature": 0, "max_tokens": 24}
        chat = self.client().chat.completions.create(messages=messages, **settings)
        plain = self.client().completions.create(prompt="# sorts a list\ndef ", **settings)
        self.assertEqual(chat.choices[0].message.content, plain.choices[0].text)
        self.assertEqual(chat.usage.prompt_tokens, plain.usage.prompt_tokens)
        streamed = list(self.client().chat.completions.create(
            messages=messages, stream=True, stream_options={"include_usage": True}, **settings))
        self.assertEqual(streamed[0].choices[0].delta.role, "assistant")
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in streamed if c.choices),
                         chat.choices[0].message.content)
        self.assertEqual(streamed[-1].usage, chat.usage)

    def test_a_model_without_a_chat_template_serves_completions_only_and_says_so(self):
        program = self.gateway(model=TARGET)
        self.assertIn("chat_template", program.err())
        with self.assertRaisesRegex(openai.BadRequestError, "completions only"):
            self.client().chat.completions.create(model="demo-target", messages=[{"role": "user", "content": "x"}])

    # ---- parameters

    def test_choices_differ_and_repeat_with_their_seed(self):
        self.gateway()
        settings = {"model": "demo-target", "prompt": ["def a(", "class B"], "max_tokens": 16, "n": 2, "seed": 3,
                    # Under other rules a seed gives the law: which rounds draft is the clock's choice.
                    "extra_body": {"outrider": {"acceptance_rule": "coupled"}}}
        first = self.client().completions.create(**settings)
        self.assertEqual([c.index for c in first.choices], [0, 1, 2, 3])
        texts = [c.text for c in first.choices]
        self.assertNotEqual(texts[0], texts[1])
        self.assertEqual([c.text for c in self.client().completions.create(**settings).choices], texts)

    def test_usage_is_true(self):
        self.gateway()
        reply = self.client().completions.create(
            model="demo-target", prompt=PROMPT, max_tokens=48, temperature=0,
            extra_body={"outrider": {"num_speculative_tokens": 4, "rounds": True}})
        rounds = reply.choices[0].outrider["rounds"]
        details = reply.usage.completion_tokens_details
        self.assertEqual(reply.usage.completion_tokens, sum(len(r["tokens"]) for r in rounds))
        self.assertEqual(details.accepted_prediction_tokens, sum(r["round"]["num_accepted"] for r in rounds))
        self.assertEqual(details.rejected_prediction_tokens,
                         sum(r["round"]["num_drafted"] - r["round"]["num_accepted"] for r in rounds))
        self.assertGreater(details.accepted_prediction_tokens, 0)
        origins = [t["origin"] for r in rounds for t in r["tokens"]]
        self.assertEqual(origins.count("draft"), details.accepted_prediction_tokens)

    def test_stop_echo_and_logprobs(self):
        self.gateway()
        reply = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=64, temperature=0,
                                                 stop=["()\n"], logprobs=2)
        choice = reply.choices[0]
        self.assertEqual(choice.finish_reason, "stop")
        self.assertNotIn("()", choice.text)
        self.assertTrue(all(len(top) <= 2 for top in choice.logprobs.top_logprobs))
        self.assertTrue(all(value <= 0 for value in choice.logprobs.token_logprobs))
        self.assertTrue("".join(choice.logprobs.tokens).startswith(choice.text))
        echoed = self.client().completions.create(model="demo-target", prompt="def a(", max_tokens=4, temperature=0,
                                                  echo=True)
        self.assertTrue(echoed.choices[0].text.startswith("def a("))
        chat = self.client().chat.completions.create(
            model="demo-target", messages=[{"role": "user", "content": "x"}], max_tokens=6, temperature=0,
            logprobs=True, top_logprobs=3)
        content = chat.choices[0].logprobs.content
        self.assertEqual(len(content), chat.usage.completion_tokens)
        self.assertTrue(all(len(one.top_logprobs) == 3 for one in content))
        self.assertEqual(bytes(b for one in content for b in one.bytes).decode(errors="replace")[:4],
                         chat.choices[0].message.content[:4])

    def test_refusals_have_openais_shape_whoever_refuses(self):
        self.gateway()
        for change, param in (({"model": "gpt-4"}, "model"), ({"temperature": 5}, "temperature"),
                              ({"logit_bias": {"99999999": 1}}, "logit_bias"),
                              ({"outrider": {"num_speculative_tokens": 500}}, "outrider"),
                              ({"prompt": [10 ** 8]}, None), ({"prompt": "x" * 50_000}, None)):
            with self.subTest(change):
                body = json.dumps({"model": "demo-target", "prompt": "p", "max_tokens": 2, **change}).encode()
                with self.assertRaises(urllib.error.HTTPError) as refusal:
                    urllib.request.urlopen(urllib.request.Request(f"{self.url}/v1/completions", body))
                error = json.load(refusal.exception)["error"]
                self.assertIn(refusal.exception.code, (400, 404))
                self.assertEqual(set(error), {"message", "type", "param", "code"})
                self.assertTrue(error["message"])
                if param:
                    self.assertEqual(error["param"], param)
        with self.assertRaises(urllib.error.HTTPError) as refusal:
            urllib.request.urlopen(f"{self.url}/v1/unknown")
        self.assertEqual(refusal.exception.code, 404)
        self.assertIn("error", json.load(refusal.exception))

    # ---- keys

    def test_keys_are_asked_for_and_limited(self):
        path = self.folder / "keys"
        path.write_text("alice sk-alice\nbob sk-bob requests=1\n")
        self.gateway("--api-keys", path)
        with self.assertRaises(openai.AuthenticationError):
            self.client("sk-wrong").models.list()
        self.assertEqual([m.id for m in self.client("sk-alice").models.list()], ["demo-target"])
        stream = self.client("sk-bob").completions.create(model="demo-target", prompt=PROMPT, max_tokens=900,
                                                          temperature=1, seed=2, stream=True,
                                                          extra_body={"ignore_eos": True})
        next(iter(stream))
        with self.assertRaises(openai.RateLimitError) as refusal:
            self.client("sk-bob").completions.create(model="demo-target", prompt="p", max_tokens=1)
        self.assertEqual(refusal.exception.response.headers["retry-after"], "1")
        stream.close()
        self.client("sk-alice").completions.create(model="demo-target", prompt="p", max_tokens=1)

    # ---- nothing lost at the door

    def test_a_coordinator_that_dies_is_no_seam(self):
        dying = self.launch_coordinator()
        self.gateway(coordinators=[dying.address(), self.coordinator])
        settings = {"model": "demo-target", "prompt": PROMPT, "max_tokens": 400, "temperature": 1,
                    "extra_body": {"ignore_eos": True, "outrider": {"acceptance_rule": "coupled"}}}
        expected = {seed: self.client().completions.create(seed=seed, **settings).choices[0].text
                    for seed in range(6)}
        texts, begun = {}, threading.Barrier(7)

        def read(seed):
            parts = []
            for chunk in self.client().completions.create(seed=seed, stream=True, **settings):
                parts.append(chunk.choices[0].text)
                if len(parts) == 3:
                    begun.wait(60)
            texts[seed] = "".join(parts)

        readers = [threading.Thread(target=read, args=(seed,)) for seed in expected]
        for reader in readers:
            reader.start()
        begun.wait(60)
        dying.send(signal.SIGKILL)
        for reader in readers:
            reader.join(60)
        self.assertEqual(texts, expected)
        metrics = urllib.request.urlopen(f"{self.url}/metrics").read().decode()
        resumes = next(line for line in metrics.splitlines() if line.startswith("outrider_gateway_resumes_total "))
        self.assertGreater(float(resumes.split()[1]), 0)

    def test_a_reader_who_leaves_ends_the_session(self):
        lone = self.launch_coordinator("--max-sessions", "1")
        self.gateway(coordinators=[lone.address()])
        stream = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=900, stream=True,
                                                  extra_body={"ignore_eos": True})
        next(iter(stream))
        stream.close()

        def is_free():
            try:
                return self.client().completions.create(model="demo-target", prompt="p", max_tokens=1)
            except openai.RateLimitError as refusal:
                self.assertIn("retry-after", refusal.response.headers)
                return None
        wait_until("the only session is free again", is_free)

    def test_a_drain_lets_streams_finish_and_turns_others_away(self):
        program = self.gateway("--metrics-listen", "127.0.0.1:0")
        stream = iter(self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=900, n=8,
                                                       seed=1, stream=True, extra_body={"ignore_eos": True}))
        next(stream)
        program.send(signal.SIGTERM)
        # On new connections, while the stream runs.
        wait_until("the gateway is not healthy any more", lambda: self.status("/health") == 503)
        self.assertEqual(self.status("/live"), 200)
        with self.assertRaises(openai.InternalServerError) as refusal:
            self.client().completions.create(model="demo-target", prompt="p", max_tokens=1)
        self.assertEqual((refusal.exception.status_code, refusal.exception.code), (503, "draining"))
        self.assertEqual(refusal.exception.response.headers["retry-after"], "1")
        reasons = [chunk.choices[0].finish_reason for chunk in stream]
        self.assertEqual(reasons.count("length"), 8)
        self.assertEqual(program.wait(), 0, program.err())

    def test_a_drain_that_takes_too_long_is_cut_short(self):
        for flags, number in ((["--drain-seconds", "1"], 1), ([], 2)):  # by its limit, and by a second signal
            with self.subTest(flags):
                program = self.gateway(*flags)
                stream = self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=900, n=8,
                                                          stream=True, extra_body={"ignore_eos": True})
                next(iter(stream))
                for _ in range(number):
                    program.send(signal.SIGTERM)
                    wait_until("it drains", lambda: self.status("/health") != 200)
                self.assertEqual(program.wait(), number - 1, program.err())

    def test_operators_have_an_address_of_their_own(self):
        program = self.gateway("--metrics-listen", "127.0.0.1:0", "--log-json")
        side = wait_until("it says where", lambda: re.search(r"metrics on (\S+)", program.out()))[1]
        for path, status in (("/metrics", 200), ("/health", 200), ("/live", 200), ("/v1/models", 404)):
            self.assertEqual(self.status(path, f"http://{side}"), status, path)
        self.assertEqual(self.status("/metrics"), 404)

    def test_a_slow_reader_is_dropped(self):
        program = self.gateway("--slow-reader-seconds", "1")
        host, port = self.url.removeprefix("http://").split(":")
        body = json.dumps({"model": "demo-target", "prompt": PROMPT, "max_tokens": 900, "stream": True, "n": 16,
                           "logprobs": 20, "ignore_eos": True}).encode()
        with socket.socket() as reader:
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect((host, int(port)))
            reader.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            wait_until("the reader is dropped", lambda: "did not read" in program.err())

    def test_nobody_to_ask_is_said_clearly(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            program = Program(sys.executable, "-B", "-m", "outrider_gateway.main", "--listen", "127.0.0.1:0",
                              "--coordinator", f"127.0.0.1:{unused.getsockname()[1]}",
                              inside=("env", f"PYTHONPATH={HERE.parent}"))
            self.addCleanup(program.close)
            self.url = f"http://{program.address()}"
            self.assertFalse(self.is_healthy())
            with self.assertRaisesRegex(openai.InternalServerError, "no coordinator answers"):
                self.client().completions.create(model="demo-target", prompt="p")

    def test_flags_that_cannot_be_are_named(self):
        for flags, word in ((["--listen", "nowhere"], "--listen"), (["--coordinator", "here"], "--coordinator"),
                            (["--coordinator", "far.example:7000"], "--tls-ca"),
                            (["--api-keys", "/nonexistent"], "--api-keys"), (["--model", "/nonexistent"], "--model"),
                            (["--tls-cert", "x"], "--tls-key")):
            with self.subTest(flags):
                more = [] if "--coordinator" in flags else ["--coordinator", self.coordinator]
                program = Program(sys.executable, "-B", "-m", "outrider_gateway.main", *flags, *more,
                                  inside=("env", f"PYTHONPATH={HERE.parent}"))
                self.addCleanup(program.close)
                self.assertEqual(program.wait(), 2)
                self.assertIn(word, program.err())


if __name__ == "__main__":
    import unittest
    unittest.main()
