# SPDX-License-Identifier: Apache-2.0
"""The real programs when clients do not read, and when they are told to end a second time."""
import signal
import time
import unittest

from closed_window import ClosedWindowClient, generate_request
from programs import wait_until
from scraping import ScrapingTest

FAILED = 1
TOO_MANY = 60000  # tokens: more than any buffer holds
PLAIN = ("-k", "0", "--prompt-tokens", "1 2 3")


class SlowClientTest(ScrapingTest):
    def start_all(self, *coordinator_flags, pass_ms=0):
        self.verifier = self.start("outrider-verifier", "--simulate", "--simulate-pass-ms", pass_ms,
                                   "--listen", "127.0.0.1:0", "--drain-seconds", "3600")
        self.coordinator = self.start(
            "outrider-coordinator", "--verifier", self.verifier.address(), "--listen", "127.0.0.1:0",
            *self.HTTP, *coordinator_flags)
        self.address = self.coordinator.address()
        self.wait_for_nodes(self.address, "verifier")

    def start_two_that_do_not_read(self):
        for _ in range(2):
            client = ClosedWindowClient(self.address, generate_request(TOO_MANY))
            self.addCleanup(client.close)
        wait_until("they have all the places", lambda: "RESOURCE_EXHAUSTED" in self.ask().err())

    def ask(self):
        return self.generate(self.address, *PLAIN, "--max-tokens", "4", "--timeout", "20")

    def num_tokens(self):
        return self.value(self.coordinator, "generated_tokens_total")

    def test_a_client_that_does_not_read_is_dropped_and_its_place_is_free(self):
        self.start_all("--max-sessions", "2", "--slow-client-seconds", "5")
        self.start_two_that_do_not_read()
        wait_until("others are served", lambda: self.ask().wait() == 0)
        wait_until("both are dropped", lambda: self.coordinator.err().count("has stopped reading") == 2)
        # What gRPC and the queue took, and no more rounds after that.
        self.assertLess(self.num_tokens(), TOO_MANY / 2)

    def test_a_coordinator_with_clients_that_do_not_read_ends(self):
        self.start_all("--max-sessions", "2", "--drain-seconds", "2")
        self.start_two_that_do_not_read()
        self.assertEqual(self.coordinator.end(), 0)

    def test_a_coordinator_that_drains_waits_for_clients_to_read_what_they_got(self):
        self.start_all("--drain-seconds", "3600", "--max-plain-tokens", "1")
        client = ClosedWindowClient(self.address, generate_request(40))
        self.addCleanup(client.close)
        wait_until("its generation has ended", lambda: self.value(
            self.coordinator, "requests_total", finish_reason="length", code="OK") == 1)
        self.coordinator.send(signal.SIGTERM)
        wait_until("it drains", self.nobody_listens)
        time.sleep(2)
        self.assertIsNone(self.coordinator.process.poll(), "it does not wait")
        self.assertEqual(client.num_messages(), 0)
        client.open_window()
        wait_until("the stream has ended", lambda: client.has_ended)
        self.assertEqual(client.num_messages(), 1 + 40 + 1)  # its start, its rounds, its finish
        self.assertEqual(self.coordinator.wait(), 0)

    def test_clients_that_do_not_read_keep_a_coordinator_no_longer_than_its_drain_time(self):
        self.start_all("--max-sessions", "2", "--drain-seconds", "4")
        self.start_two_that_do_not_read()
        begin = time.monotonic()
        self.assertEqual(self.coordinator.end(), 0)
        self.assertLess(time.monotonic() - begin, 8)  # it is to take 4 at most, and then to end

    def nobody_listens(self):
        return "UNAVAILABLE" in self.ask().err()

    def test_a_second_signal_ends_a_coordinator_at_once(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            self.start_all("--max-sessions", "2", "--drain-seconds", "3600")
            self.start_two_that_do_not_read()
            self.coordinator.send(signal.SIGTERM)
            wait_until("it drains", self.nobody_listens)
            self.assertEqual(self.coordinator.end(number), -number)

    def test_sigint_does_not_wait_for_streams(self):
        self.start_all("--drain-seconds", "3600")
        stream = self.start_generate(self.address, *PLAIN, "--max-tokens", str(TOO_MANY), "--json")
        wait_until("the stream has begun", lambda: self.num_tokens() > 0)
        self.assertEqual(self.coordinator.end(signal.SIGINT), 0)
        self.assertEqual(stream.wait(), FAILED)
        self.assertIn("UNAVAILABLE: this coordinator is shutting down", stream.err())

    def test_a_second_signal_ends_a_node_in_its_pass_at_once(self):
        self.start_all(pass_ms=100000)
        self.start_generate(self.address, *PLAIN)
        wait_until("its pass has begun", lambda: self.value(self.coordinator, "requests_running") > 0)
        self.verifier.send(signal.SIGTERM)
        wait_until("it drains", lambda: "draining" in self.verifier.err())
        self.assertEqual(self.verifier.end(signal.SIGTERM), -signal.SIGTERM)


if __name__ == "__main__":
    unittest.main()
