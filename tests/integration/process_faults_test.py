# SPDX-License-Identifier: Apache-2.0
"""The real programs when one of them is killed, stopped, late, or told to end."""
import asyncio
import json
import os
import pathlib
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest

from programs import own_loopback, wait_until
from scraping import ScrapingTest

sys.path.append(str(pathlib.Path(os.environ["OUTRIDER_SOURCE_DIR"]) / "tests/chaos"))
from proxy import Proxy  # noqa: E402

FAILED = 1
KERNELS = 5  # their column in the table of `outrider describe`
SIMULATED_BLOCK_BYTES = 128  # of 16 tokens
GREEDY = ("--temperature", "0", "--ignore-eos", "--max-tokens", "500", "def merge(left, right):")


def free_address():
    with socket.socket() as probe:
        probe.bind((FaultTest.HOST, 0))
        return f"{FaultTest.HOST}:{probe.getsockname()[1]}"


class FaultTest(ScrapingTest):
    HOST = own_loopback()
    plain_texts = {}  # what all streams here have to give, by kernels, of which each process takes the fastest

    def start_all(self, *coordinator_flags, node_flags=()):
        self.verifier, self.drafter = self.start_verifier(*node_flags), self.start_drafter(*node_flags)
        self.coordinator = self.start_coordinator(
            self.verifier.address(), self.drafter.address(), *coordinator_flags)
        self.address = self.coordinator.address()
        self.wait_for_nodes(self.address, "verifier", "drafter")

    def generate_plain(self):
        """What these nodes give with K = 0."""
        # A verifier that was stopped for a while is asked again within a second.
        self.wait_for_nodes(self.address, "verifier")
        program = self.generate(self.address, "-k", "0", *GREEDY)
        self.assertEqual(program.wait(), 0, program.err())
        return program.out()

    def plain_text(self):
        """What every stream here has to give, whatever happens to it, by the nodes of the first test that asked."""
        kernels = re.search(r"^verifier .*$", self.wait_for_nodes(self.address, "verifier"), re.M)[0].split()[KERNELS]
        if kernels not in self.plain_texts:
            self.plain_texts[kernels] = self.generate_plain()
        return self.plain_texts[kernels]

    def start_stream_and_pause_it(self, *flags):
        """A stream that stands still in its middle, as its verifier is stopped. Where this test got no time to run, it may have
        been over before that: another one then."""
        for _ in range(3):
            stream = self.start_generate(self.address, "-k", "4", *flags, *GREEDY)
            wait_until("the stream has begun", stream.out)
            self.verifier.send(signal.SIGSTOP)
            if stream.process.poll() is None:
                return stream
            self.go_on()
        return self.fail("three streams were over too soon")

    def go_on(self):
        self.verifier.send(signal.SIGCONT)

    def assert_serves(self):
        program = self.generate(self.address, "--max-tokens", "8", "x")
        self.assertEqual(program.wait(), 0, program.err())


class DrafterFaultTest(FaultTest):
    """Costs speed only: the stream ends well, with the output of plain decoding."""

    def assert_output_is_plain(self, stream):
        self.assertEqual(stream.wait(), 0, stream.err())
        self.assertIn("up to the length limit", stream.err())
        self.assertEqual(stream.out(), self.plain_text())

    def test_killed_in_a_stream(self):
        self.start_all()
        stream = self.start_stream_and_pause_it()
        self.drafter.end(signal.SIGKILL)
        self.go_on()
        self.assert_output_is_plain(stream)

    def test_stopped_in_a_stream(self):
        self.start_all("--draft-timeout-ms", "200")
        stream = self.start_stream_and_pause_it()
        self.drafter.send(signal.SIGSTOP)
        self.go_on()
        self.assert_output_is_plain(stream)

    def test_killed_while_it_drafts_ahead(self):
        """The verifier stands still, so that a call ahead is under way when the drafter goes."""
        self.start_all("--schedule", "predraft")
        stream = self.start_stream_and_pause_it()
        self.drafter.end(signal.SIGKILL)
        self.go_on()
        self.assert_output_is_plain(stream)

    def test_stopped_while_it_drafts_ahead(self):
        self.start_all("--schedule", "predraft", "--draft-timeout-ms", "200")
        stream = self.start_stream_and_pause_it()
        self.drafter.send(signal.SIGSTOP)
        self.go_on()
        self.assert_output_is_plain(stream)

    def test_told_to_end_in_a_stream(self):
        self.start_all()
        stream = self.start_stream_and_pause_it()
        self.assertEqual(self.drafter.end(signal.SIGTERM), 0)
        self.go_on()
        self.assert_output_is_plain(stream)

    def test_late_at_the_start_it_is_used_from_when_it_comes(self):
        verifier, drafter = self.start_verifier(), free_address()
        self.address = self.start_coordinator(verifier.address(), drafter).address()
        self.assertIn("no drafter is ready", self.wait_for_nodes(self.address, "verifier"))
        self.assert_serves()
        self.start_drafter(listen=drafter)
        self.wait_for_nodes(self.address, "verifier", "drafter")
        # Not by each stream: none waits for a drafter that gets no time to run.
        wait_until("drafts are accepted", lambda: re.search(
            r"[1-9]\d* of \d+ drafts accepted", self.generate(self.address, "-k", "4", *GREEDY).err()), patience=120)

    def test_started_again_in_a_stream_it_drafts_for_that_stream(self):
        """It does so within seconds, although calls to it have failed for so long that the next try was far off."""
        def start_drafter(listen):
            return self.start("outrider-drafter", "--simulate", "--simulate-acceptance", "1", "--listen", listen)
        verifier = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", "40", "--listen", "127.0.0.1:0")
        drafter = start_drafter(f"{self.HOST}:0")
        coordinator = self.start("outrider-coordinator", "--listen", "127.0.0.1:0", *self.HTTP,
                                 "--verifier", verifier.address(), "--drafter", drafter.address())
        self.wait_for_nodes(coordinator.address(), "verifier", "drafter")
        stream = self.start_generate(coordinator.address(), "-k", "4", "--max-tokens", "960",
                                     "--prompt-tokens", "1 2 3", "--json-rounds")
        wait_until("it drafts", lambda: self.value(coordinator, "draft_tokens_total") > 0)
        drafter.end(signal.SIGKILL)
        time.sleep(8)  # tried again after 1, 2 and 4 s; the next pause would be 8 s
        start_drafter(drafter.address()).address()
        self.assertEqual(stream.wait(), 0, stream.err())
        rounds = [one["drafted"] > 0 for one in json.loads(stream.out())["rounds"][1:]]
        gap = "".join("d" if drafted else "-" for drafted in rounds)
        self.assertRegex(gap, "d-{20,}d{5,}")


class VerifierFaultTest(FaultTest):
    def test_killed_in_a_stream_it_holds_the_stream_until_it_is_back(self):
        self.start_all()
        plain = self.plain_text()
        stream = self.start_stream_and_pause_it()
        self.verifier.end(signal.SIGKILL)
        wait_until("the stream holds", lambda: "holds, as no other verifier" in self.coordinator.err())
        self.start_verifier(listen=self.verifier.address()).address()
        self.assertEqual(stream.wait(), 0, stream.err())
        self.assertEqual(stream.out(), plain)

    def test_away_for_longer_than_a_stream_may_take_the_client_says_how_to_resume_it(self):
        self.start_all()
        plain = self.plain_text()
        stream = self.start_stream_and_pause_it("--timeout", "10")
        self.verifier.end(signal.SIGKILL)
        self.assertEqual(stream.wait(), FAILED, stream.err())
        command = shlex.split(stream.err().splitlines()[-1])
        self.assertIn("--resume-tokens", command)
        self.start_verifier(listen=self.verifier.address()).address()
        self.wait_for_nodes(self.address, "verifier")
        rest = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        self.assertEqual(rest.returncode, 0, rest.stderr)
        self.assertEqual(stream.out() + rest.stdout, plain)

    def test_stopped_and_continued_it_is_only_slow(self):
        self.start_all()
        stream = self.start_stream_and_pause_it()
        time.sleep(1)
        self.go_on()
        self.assertEqual(stream.wait(), 0, stream.err())
        self.assertEqual(stream.out(), self.plain_text())

    def test_stopped_for_longer_than_its_deadline_it_is_asked_again(self):
        self.start_all("--verify-timeout-ms", "300")
        stream = self.start_stream_and_pause_it()
        time.sleep(2)
        self.go_on()
        self.assertEqual(stream.wait(), 0, stream.err())
        self.assertEqual(stream.out(), self.plain_text())

    def test_late_at_the_start_the_coordinator_waits_for_it(self):
        verifier = free_address()
        coordinator = self.start_coordinator(verifier, self.start_drafter().address())
        self.address = coordinator.address()
        self.assert_refuses(self.generate(self.address, "x"), FAILED, "UNAVAILABLE", "no verifier is ready")
        self.start_verifier(listen=verifier)
        self.wait_for_nodes(self.address, "verifier", "drafter")
        self.assert_serves()


class PoisonTest(FaultTest):
    """A request that every verifier dies of: killed when its tokens come to the proxy before it."""
    DEADLY = range(101, 141)
    BYTES = b"".join(token.to_bytes(4, "little") for token in DEADLY)

    def setUp(self):
        super().setUp()
        self.loop = asyncio.new_event_loop()
        thread = threading.Thread(target=self.loop.run_forever)
        thread.start()
        self.addCleanup(self.loop.close)
        self.addCleanup(thread.join)
        self.addCleanup(self.loop.call_soon_threadsafe, self.loop.stop)
        self.dead = []

    def before(self, verifier):
        """The address of a proxy that kills it."""
        def look(data):
            if self.BYTES in data and verifier not in self.dead:
                self.dead.append(verifier)
                verifier.process.kill()
        proxy = Proxy(verifier.address())
        proxy.watch = look
        asyncio.run_coroutine_threadsafe(proxy.start(), self.loop).result()
        return proxy.address

    def ask(self, tokens):
        return self.generate(self.coordinator.address(), "-k", "0", "--max-tokens", "8", "--timeout", "30",
                             "--prompt-tokens", " ".join(str(token) for token in tokens))

    def test_sent_again_it_reaches_no_verifier(self):
        verifiers = [self.start("outrider-verifier", "--simulate", "--listen", f"{self.HOST}:0") for _ in range(4)]
        self.coordinator = self.start(
            "outrider-coordinator", "--listen", f"{self.HOST}:0", *self.HTTP,
            *(word for verifier in verifiers for word in ("--verifier", self.before(verifier))))
        self.coordinator.address()
        wait_until("all verifiers are found",
                   lambda: self.value(self.coordinator, "nodes", peer="verifier", state="ready") == len(verifiers))
        self.assert_refuses(self.ask(self.DEADLY), FAILED, "INTERNAL")
        self.assertEqual(len(self.dead), 2)
        self.assert_refuses(self.ask(self.DEADLY), FAILED, "INTERNAL", "should not be sent again")
        self.assertEqual(len(self.dead), 2)
        self.assertEqual(self.value(self.coordinator, "quarantined_requests_total"), 1)
        self.assertIn("refused: INTERNAL, POISON", self.coordinator.err())
        self.assertEqual(self.ask(range(101, 140)).wait(), 0)


class HungDeviceTest(FaultTest):
    def test_a_pass_that_does_not_end_ends_the_node(self):
        hung = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", "100000", "--max-pass-seconds", "1",
                          "--listen", "127.0.0.1:0")
        coordinator = self.start("outrider-coordinator", "--verifier", hung.address(), "--listen", "127.0.0.1:0")
        self.wait_for_nodes(coordinator.address(), "verifier")
        stream = self.start_generate(coordinator.address(), "-k", "0", "--prompt-tokens", "1 2 3", "--timeout", "60")
        self.assertEqual(hung.wait(), FAILED, hung.err())
        self.assertIn("E the device hangs, and this node serves no more: a pass has taken more than 1 s", hung.err())
        stream.end(signal.SIGKILL)

    def test_one_that_drains_does_not_wait_for_it(self):
        hung = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", "100000", "--max-pass-seconds", "4",
                          "--drain-seconds", "1", "--listen", "127.0.0.1:0", *self.HTTP)
        coordinator = self.start("outrider-coordinator", "--verifier", hung.address(), "--listen", "127.0.0.1:0")
        self.wait_for_nodes(coordinator.address(), "verifier")
        stream = self.start_generate(coordinator.address(), "-k", "0", "--prompt-tokens", "1 2 3", "--timeout", "60")
        wait_until("its pass has begun", lambda: self.value(hung, "requests_running") > 0)
        hung.send(signal.SIGTERM)
        self.assertEqual(hung.wait(), FAILED, hung.err())
        self.assertIn("E the device hangs", hung.err())
        stream.end(signal.SIGKILL)

    def test_a_node_without_work_does_not_hang(self):
        # A pass that takes no time has longer than any test stands still.
        idle = self.start("outrider-verifier", "--simulate", "--max-pass-seconds", "4", "--listen", "127.0.0.1:0")
        coordinator = self.start("outrider-coordinator", "--verifier", idle.address(), "--listen", "127.0.0.1:0")
        self.wait_for_nodes(coordinator.address(), "verifier")
        request = ("-k", "0", "--prompt-tokens", "1 2 3", "--max-tokens", "8")
        self.assertEqual(self.generate(coordinator.address(), *request).wait(), 0)
        time.sleep(4.5)
        self.assertEqual(self.generate(coordinator.address(), *request).wait(), 0)
        self.assertIsNone(idle.process.poll(), idle.err())


class FullQueueTest(FaultTest):
    def test_no_stream_ends_because_both_nodes_are_full(self):
        full = ("--max-queue-length", "1")
        self.verifier, self.drafter = self.start_verifier(*full), self.start_drafter(*full)
        self.coordinator = self.start_coordinator(self.verifier.address(), self.drafter.address())
        self.address = self.coordinator.address()
        self.wait_for_nodes(self.address, "verifier", "drafter")
        request = ("--temperature", "0", "--ignore-eos", "--max-tokens", "40", "def merge(left, right):")
        streams = [self.start_generate(self.address, "-k", "4", *request) for _ in range(24)]
        self.assertEqual([stream.wait() for stream in streams], [0] * len(streams), streams[0].err())
        plain = self.generate(self.address, "-k", "0", *request).out()
        self.assertEqual({stream.out() for stream in streams}, {plain})


    def test_no_stream_ends_because_the_cache_is_full(self):
        """Two that have begun need more blocks together than there are: the younger is refused until the older is done."""
        self.verifier = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", "10", "--listen", "127.0.0.1:0",
                                   "--kv-cache-memory", 40 * SIMULATED_BLOCK_BYTES, *self.HTTP)
        self.coordinator = self.start("outrider-coordinator", "--verifier", self.verifier.address(), "--listen", "127.0.0.1:0")
        self.wait_for_nodes(self.coordinator.address(), "verifier")
        streams = []
        for _ in range(2):
            streams.append(self.start_generate(self.coordinator.address(), "-k", "0", "--temperature", "0", "--ignore-eos",
                                               "--max-tokens", "480", "--prompt-tokens", "1 2 3", "--json"))
            wait_until("it has begun", lambda: self.verifier.err().count("session opened") == len(streams))
        ends = [(stream.wait(), stream.err()) for stream in streams]
        self.assertEqual(ends, [(0, "")] * 2)
        first, second = (json.loads(stream.out())["token_ids"] for stream in streams)
        self.assertEqual(first, second)
        self.assertGreater(self.value(self.verifier, "requests_total", method="Verify", code="RESOURCE_EXHAUSTED"), 0)


class ClientFaultTest(FaultTest):
    def test_clients_killed_in_their_streams_leave_their_places_to_others(self):
        self.start_all("--max-sessions", "16")
        streams = [self.start_generate(self.address, "-k", "4", *GREEDY) for _ in range(16)]
        for stream in streams:
            wait_until("the stream has begun", stream.out)
        self.verifier.send(signal.SIGSTOP)
        self.assert_refuses(self.generate(self.address, "x"), FAILED, "RESOURCE_EXHAUSTED", "16 sessions")
        for stream in streams:
            stream.end(signal.SIGKILL)
        self.go_on()

        def all_served():
            others = [self.start_generate(self.address, "--max-tokens", "8", "x") for _ in range(16)]
            return [other.wait() for other in others] == [0] * 16
        wait_until("sixteen others are served at once", all_served)

    def test_a_client_interrupted_in_its_stream_says_what_it_has(self):
        self.start_all()
        stream = self.start_stream_and_pause_it()
        self.assertEqual(stream.end(signal.SIGINT), 130)
        self.assertIn("cut short", stream.err())
        self.go_on()
        self.assert_serves()


class TerminationTest(FaultTest):
    def test_every_server_ends_with_status_0(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.start_all()
            self.assert_serves()
            for program in (self.coordinator, self.drafter, self.verifier):
                self.assertEqual(program.end(number), 0, program.name)
                self.assertEqual(program.err().count(" E "), 0, program.err())

    def test_servers_that_spin_say_so_and_serve_the_same(self):
        spin = ("--spin-us", "300")
        self.start_all(*spin, node_flags=spin)
        spinning = self.generate_plain()
        for program in (self.coordinator, self.drafter, self.verifier):
            self.assertIn("spins for up to 300 us", program.err(), program.name)
            self.assertEqual(program.end(signal.SIGTERM), 0, program.name)
        self.start_all()
        self.assertEqual(self.generate_plain(), spinning)
        for program in (self.coordinator, self.drafter, self.verifier):
            self.assertNotIn("spins", program.err(), program.name)

    def test_a_coordinator_lets_its_streams_finish_and_takes_no_others(self):
        self.start_all()
        plain = self.plain_text()
        stream = self.start_stream_and_pause_it()
        self.coordinator.send(signal.SIGTERM)
        wait_until("it takes no new requests", self.nobody_listens)
        self.go_on()
        self.assertEqual(stream.wait(), 0, stream.err())
        self.assertEqual(stream.out(), plain)
        self.assertEqual(self.coordinator.wait(), 0)

    def nobody_listens(self):
        return "UNAVAILABLE" in self.generate(self.address, "--max-tokens", "1", "--timeout", "2", "x").err()

    def test_a_node_that_does_not_serve_yet_ends_at_once(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            node = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", "100000", "--measure")
            wait_until("it measures", lambda node=node: "weights" in node.err())
            self.assertEqual(node.end(number), -number)

    def test_a_coordinator_waits_no_longer_than_its_drain_time(self):
        self.start_all("--drain-seconds", "4")
        stream = self.start_stream_and_pause_it()
        begin = time.monotonic()
        self.assertEqual(self.coordinator.end(), 0)
        self.assertLess(time.monotonic() - begin, 8)  # it is to take 4 at most, and then to end
        self.assertEqual(stream.wait(), FAILED)
        self.assertIn("UNAVAILABLE: this coordinator is shutting down", stream.err())
        self.assertIn("resume", stream.err())

    def test_a_node_that_drains_serves_its_streams_to_their_end(self):
        self.start_all(node_flags=("--drain-seconds", "3600"))
        plain = self.plain_text()
        for node in (self.drafter, self.verifier):
            stream = self.start_stream_and_pause_it()
            node.send(signal.SIGTERM)
            self.go_on()
            self.assertEqual(stream.wait(), 0, stream.err())
            self.assertEqual(stream.out(), plain)
            self.assertEqual(node.wait(), 0)
            self.assertEqual(node.err().count(" E "), 0, node.err())

    def test_a_verifier_with_no_time_to_drain_ends_well_and_its_streams_hold(self):
        self.start_all(node_flags=("--drain-seconds", "0"))
        plain = self.plain_text()
        stream = self.start_stream_and_pause_it()
        self.verifier.send(signal.SIGTERM)
        self.go_on()
        self.assertEqual(self.verifier.wait(), 0)
        wait_until("the stream holds", lambda: "holds, as no other verifier" in self.coordinator.err())
        self.start_verifier(listen=self.verifier.address()).address()
        self.assertEqual(stream.wait(), 0, stream.err())
        self.assertEqual(stream.out(), plain)


class ReplacedDrafterTest(FaultTest):
    """Streams of every kind, greedy and coupled, and a drafter that another one takes the place of: none notices."""
    NUM_STREAMS = 24
    PROMPTS = ("def merge(left, right):", "import os", "class Node:", "for line in lines:", "x = 1")

    def request(self, i):
        rule = ("--temperature", "0") if i % 2 else ("--acceptance-rule", "coupled", "--seed", str(i))
        return (*rule, "--ignore-eos", "--max-tokens", "300", self.PROMPTS[i // 2])

    def text_of(self, stream):
        self.assertEqual(stream.wait(), 0, stream.err())
        return stream.out()

    def test_it_comes_at_another_address(self):
        verifier, drafter = self.start_verifier(), self.start_drafter()
        other = free_address()
        coordinator = self.start_coordinator(verifier.address(), drafter.address(), "--drafter", other)
        address = coordinator.address()
        self.wait_for_nodes(address, "verifier", "drafter")
        requests = [self.request(i) for i in range(len(self.PROMPTS) * 2)]
        expected = [self.text_of(self.generate(address, "-k", "0", *request)) for request in requests]
        streams = [self.start_generate(address, "-k", "3", *requests[i % len(requests)])
                   for i in range(self.NUM_STREAMS)]
        for stream in streams:
            wait_until("the stream has begun", stream.out)
        verifier.send(signal.SIGSTOP)
        self.assertTrue(any(stream.process.poll() is None for stream in streams), "all streams were over too soon")
        drafter.end(signal.SIGKILL)
        verifier.send(signal.SIGCONT)
        self.start_drafter(listen=other).address()
        for i, stream in enumerate(streams):
            self.assertEqual(self.text_of(stream), expected[i % len(expected)])


if __name__ == "__main__":
    unittest.main()
