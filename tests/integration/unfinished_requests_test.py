# SPDX-License-Identifier: Apache-2.0
"""The real programs when a client's requests are not whole."""
import pathlib
import re
import signal
import time
import unittest

from programs import wait_until
from scraping import ScrapingTest, get
from unfinished_requests import EmptyRequests, UnfinishedRequests

PLAIN = ("-k", "0", "--prompt-tokens", "1 2 3", "--max-tokens", "4", "--timeout", "20")
INTERRUPTED = 130
MOST = 8 << 20  # of a request, with its length
MANY = 120  # which would take 960 MiB together
MIB = 1 << 20


class UnfinishedRequestsTest(ScrapingTest):
    def setUp(self):
        super().setUp()
        self.verifier = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", 2, "--listen", "127.0.0.1:0")
        self.coordinator = self.start("outrider-coordinator", "--verifier", self.verifier.address(),
                                      "--listen", "127.0.0.1:0", *self.HTTP)
        self.address = self.coordinator.address()
        self.wait_for_nodes(self.address, "verifier")

    def flood(self, path, **how):
        client = UnfinishedRequests(self.address, path, **how)
        self.addCleanup(client.close)
        return client

    def most_memory(self):
        """How much the coordinator had in memory at once so far."""
        status = pathlib.Path(f"/proc/{self.coordinator.process.pid}/status").read_text("utf-8")
        return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) << 10

    def assert_serves_through(self, client):
        end = time.monotonic() + 20
        while len(client.ended) < MANY / 2 and time.monotonic() < end:
            program = self.generate(self.address, *PLAIN)
            self.assertEqual(program.wait(), 0, program.err())
        self.assertLess(self.most_memory(), 600 * MIB)
        self.assertGreaterEqual(len(client.ended), MANY / 2)

    def test_many_take_little_memory_and_hold_up_nobody(self):
        self.assert_serves_through(self.flood(
            b"/outrider.v1.GenerationService/Generate", num_calls=MANY, message_bytes=MOST - 8))

    def test_nor_do_those_to_what_answers_probes(self):
        self.assert_serves_through(self.flood(
            b"/grpc.health.v1.Health/Check", num_calls=MANY, message_bytes=MOST - 8))

    def assert_answers_through_empty_calls_of(self, path, rate):
        calls = EmptyRequests(self.address, path, rate)
        self.addCleanup(calls.close)
        wait_until("the places are taken", lambda: calls.num_begun > 2 * rate)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            begin = time.monotonic()
            program = self.generate(self.address, *PLAIN)
            self.assertEqual(program.wait(), 0, program.err())
            for page in ("/live", "/health"):
                self.assertEqual(get(self.http(self.coordinator), page)[0], 200, page)
            self.wait_for_nodes(self.address, "verifier")
            self.assertLess(time.monotonic() - begin, 5)

    def test_a_steady_rate_of_calls_that_say_nothing_holds_up_nobody(self):
        self.assert_answers_through_empty_calls_of(b"/outrider.v1.GenerationService/Generate", rate=100)

    def test_nor_do_those_that_ask_for_its_health(self):
        self.assert_answers_through_empty_calls_of(b"/grpc.health.v1.Health/Check", rate=100)

    def test_a_process_asks_itself_beside_any_rate(self):
        calls = EmptyRequests(self.address, b"/grpc.health.v1.Health/Check", rate=2000)
        self.addCleanup(calls.close)
        wait_until("the places are taken", lambda: calls.num_begun > 2000)
        for _ in range(10):
            self.assertEqual(get(self.http(self.coordinator), "/live")[0], 200)

    def test_a_stream_that_has_begun_goes_on(self):
        stream = self.start_generate(self.address, *PLAIN[:4], "--max-tokens", 60000, "--ignore-eos", "--timeout", 100)
        wait_until("it has begun", lambda: self.value(self.coordinator, "generated_tokens_total") > 0)
        client = self.flood(b"/outrider.v1.GenerationService/Generate", num_calls=MANY, message_bytes=MOST - 8)
        wait_until("some are refused", lambda: client.ended)
        self.assertTrue(stream.runs(), stream.err())
        self.assertEqual(stream.end(signal.SIGINT), INTERRUPTED)

    def test_one_alone_is_ended_after_a_while(self):
        client = self.flood(b"/outrider.v1.GenerationService/Generate", num_calls=1, message_bytes=100)
        wait_until("it is ended", lambda: client.ended)
        self.assertEqual(self.generate(self.address, *PLAIN).wait(), 0)


if __name__ == "__main__":
    unittest.main()
