# SPDX-License-Identifier: Apache-2.0
"""Nothing is lost at the door: coordinators that die, readers who leave, drains, keys, certificates."""
import json
import re
import shutil
import signal
import socket
import threading
import time
import unittest
import urllib.request

import openai
from door import PROMPT, TARGET, Authority, DoorTest, wait_until


class NothingLostTest(DoorTest):
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

    def test_a_coordinator_that_dies_is_no_seam(self):
        dying = self.launch_coordinator()
        self.gateway(coordinators=[dying.address(), self.coordinator])
        settings = {"model": "demo-target", "prompt": PROMPT, "max_tokens": 60, "temperature": 1,
                    "extra_body": {"ignore_eos": True, "outrider": {"acceptance_rule": "coupled"}}}
        client = self.client()
        expected = {}
        for seed in range(0, 50, 10):  # the choices of a seed have the seeds after it
            choices = client.completions.create(seed=seed, n=10, **settings).choices
            expected |= {seed + choice.index: choice.text for choice in choices}
        texts, begun = {}, threading.Barrier(51)

        def read(seed):
            parts = []
            for chunk in client.completions.create(seed=seed, stream=True, **settings):
                parts.append(chunk.choices[0].text)
                if len(parts) == 2:
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

    def test_a_coordinator_that_hangs_is_left_within_seconds(self):
        hanging = self.launch_coordinator()
        self.gateway(coordinators=[hanging.address(), self.coordinator])
        settings = {"model": "demo-target", "prompt": PROMPT, "max_tokens": 300, "temperature": 0,
                    "extra_body": {"ignore_eos": True}}
        expected = self.client().completions.create(**settings).choices[0].text
        # This much silence is less than gRPC's own patience with a connection, a minute.
        client = self.client().with_options(timeout=40, max_retries=0)
        streams = [client.completions.create(stream=True, **settings) for _ in range(2)]  # one on each
        texts = [next(iter(stream)).choices[0].text for stream in streams]
        hanging.send(signal.SIGSTOP)
        try:
            for begun, stream in zip(texts, streams, strict=True):
                self.assertEqual(begun + "".join(chunk.choices[0].text for chunk in stream), expected)
        finally:
            hanging.send(signal.SIGCONT)

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

    def test_a_reader_who_leaves_before_the_first_token_ends_the_session(self):
        lone = self.launch_coordinator("--max-sessions", "1", "--metrics-listen", "127.0.0.1:0")
        self.gateway(coordinators=[lone.address()])
        metrics = re.search(r"metrics on (\S+)", lone.out())[1]

        def num_running():
            page = urllib.request.urlopen(f"http://{metrics}/metrics").read().decode()
            return float(re.search(r"^outrider_requests_running\{.*\} (\S+)$", page, re.M)[1])
        for stream in (False, True):
            self.verifier_program.send(signal.SIGSTOP)
            try:
                with socket.create_connection(self.url.removeprefix("http://").split(":")) as reader:
                    body = json.dumps({"model": "demo-target", "prompt": "p", "stream": stream}).encode()
                    reader.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s"
                                   % (len(body), body))
                    wait_until("the session is open", lambda: num_running() == 1)
                wait_until("the session has ended", lambda: num_running() == 0)
            finally:
                self.verifier_program.send(signal.SIGCONT)

    def test_coordinators_are_asked_by_tls_and_certificates_may_be_renewed(self):
        authority = Authority(self.folder)
        certificate, key = authority.sign("door")
        files = self.folder / "own.pem", self.folder / "own.key"

        def renew(*sources):
            for target, source in zip(files, sources, strict=True):
                target.write_bytes(source.read_bytes())

        def days():
            page = urllib.request.urlopen(f"{self.url}/metrics").read().decode()
            end = re.search(r'^outrider_tls_certificate_\w+\{file="tls-cert",role="gateway"\} (\S+)$', page, re.M)
            return round((float(end[1]) - time.time()) / 86400)
        renew(certificate, key)
        server = authority.flags("server")
        port = self.launch("outrider-coordinator", *server, "--tokenizer", TARGET, "--verifier",
                           self.launch("outrider-verifier", *server, "--model", TARGET).address()
                           ).address().rpartition(":")[2]
        program = self.gateway("--tls-ca", authority.path, "--tls-cert", files[0], "--tls-key", files[1],
                               coordinators=[f"localhost:{port}"])
        ask = {"model": "demo-target", "prompt": "p", "max_tokens": 1}
        self.client().completions.create(**ask)
        files[1].write_text("garbage")
        wait_until("what cannot be used is named", lambda: f"{files[1]}" in program.err())
        self.client().completions.create(**ask)
        self.assertEqual(days(), 2)
        renew(*authority.sign("renewed", days=30))
        wait_until("the new ones are in use", lambda: "have been read again" in program.err())
        self.client().completions.create(**ask)
        self.assertEqual(days(), 30)

    def test_a_drain_lets_streams_finish_and_turns_others_away(self):
        program = self.gateway("--metrics-listen", "127.0.0.1:0", "--drain-seconds", "3600")
        stream = iter(self.client().completions.create(model="demo-target", prompt=PROMPT, max_tokens=400, n=3,
                                                       seed=1, stream=True, extra_body={"ignore_eos": True}))
        next(stream)
        program.send(signal.SIGTERM)
        # New connections see it, while the stream runs.
        wait_until("the gateway is not healthy any more", lambda: self.status("/health") == 503)
        self.assertEqual(self.status("/live"), 200)
        with self.assertRaises(openai.InternalServerError) as refusal:
            self.client().completions.create(model="demo-target", prompt="p", max_tokens=1)
        self.assertEqual((refusal.exception.status_code, refusal.exception.code), (503, "draining"))
        self.assertEqual(refusal.exception.response.headers["retry-after"], "1")
        reasons = [chunk.choices[0].finish_reason for chunk in stream]
        self.assertEqual(reasons.count("length"), 3)
        self.assertEqual(program.wait(), 0, program.err())

    def test_a_drain_that_takes_too_long_is_cut_short_and_its_readers_hear_why(self):
        for flags, number in ((["--drain-seconds", "1"], 1), ([], 2)):  # by its limit, and by a second signal
            with self.subTest(flags):
                program = self.gateway(*flags)
                request = urllib.request.Request(f"{self.url}/v1/completions", json.dumps({
                    "model": "demo-target", "prompt": PROMPT, "max_tokens": 900, "n": 8, "stream": True,
                    "ignore_eos": True}).encode())
                with urllib.request.urlopen(request) as stream:
                    stream.readline()
                    stream.readline()  # the end of that event: the next one may be the last
                    for _ in range(number):
                        program.send(signal.SIGTERM)
                        wait_until("it drains", lambda: self.status("/health") != 200)
                    *_, error, done, end = stream.read().split(b"\n\n")  # to a regular end
                self.assertEqual(json.loads(error.removeprefix(b"data: "))["error"]["code"], "draining")
                self.assertEqual((done, end), (b"data: [DONE]", b""))
                self.assertEqual(program.wait(), number - 1, program.err())
                self.assertNotIn("Traceback", program.err())

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
            reader.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                           b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            wait_until("the reader is dropped", lambda: "did not read" in program.err())

    def test_a_door_that_is_open_to_all_says_so(self):
        keys = self.folder / "keys"
        keys.write_text("alice sk-alice\n")
        for flags, is_warned in ((["--listen", "0.0.0.0:0"], True), (["--listen", "127.0.0.1:0"], False),
                                 (["--listen", "0.0.0.0:0", "--api-keys", keys], False)):
            with self.subTest(flags):
                program = self.start_gateway(*flags, "--coordinator", self.coordinator)
                program.address()
                self.assertEqual("ANYONE" in program.err(), is_warned, program.err())

    def test_a_tokenizer_of_another_model_is_named_and_never_healthy(self):
        shutil.copy(TARGET.parent.parent / "tests/golden/testdata/tokenizer/gpt2/tokenizer.json", self.model)
        program = self.start_gateway("--listen", "127.0.0.1:0", "--model", self.model, "--coordinator",
                                     self.coordinator)
        self.url = f"http://{program.address()}"
        self.assertEqual(self.status("/health"), 503)
        self.assertIn("it has 700 tokens, and that of demo-target 4096", program.err())

    def test_nobody_to_ask_is_said_clearly(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            program = self.start_gateway("--listen", "127.0.0.1:0", "--coordinator",
                                         f"127.0.0.1:{unused.getsockname()[1]}")
            self.url = f"http://{program.address()}"
            self.assertFalse(self.is_healthy())
            with self.assertRaisesRegex(openai.InternalServerError, "no coordinator answers"):
                self.client().completions.create(model="demo-target", prompt="p")

    def test_flags_that_cannot_be_are_named(self):
        for flags, word in ((["--listen", "nowhere"], "--listen"), (["--coordinator", "here"], "--coordinator"),
                            (["--coordinator", "far.example:7000"], "--tls-ca"),
                            (["--api-keys", "/nonexistent"], "--api-keys"), (["--model", "/nonexistent"], "--model"),
                            (["--tls-cert", "x"], "--tls-key"), (["--tls-ca", __file__], "--tls-ca")):
            with self.subTest(flags):
                more = [] if "--coordinator" in flags else ["--coordinator", self.coordinator]
                program = self.start_gateway(*flags, *more)
                self.assertEqual(program.wait(), 2)
                self.assertIn(word, program.err())


if __name__ == "__main__":
    unittest.main()
