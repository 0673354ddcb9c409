# SPDX-License-Identifier: Apache-2.0
"""A coordinator over several drafters and verifiers: by list, and by one name for all."""
import json
import pathlib
import re
import signal
import subprocess
import unittest

from certificates import Authority
from programs import wait_until
from scraping import ScrapingTest

OK = 0
PROMPT = "def merge(left, right):"


class SeveralNodesTest(ScrapingTest):
    def wait_for(self, coordinator, peer, **counts):
        """Waits until the coordinator has so many nodes of that role in each of these states, all on one page."""
        def are():
            page = self.scrape(coordinator)
            return all(self.sample(page, "nodes", peer=peer, state=state) == count
                       for state, count in counts.items())
        wait_until(f"{peer}s: {counts}", are)

    def calls(self, node, method="Verify"):
        """How many such calls the node has answered well."""
        return self.value(node, "requests_total", method=method, code="OK")

    def ends_well(self, stream):
        self.assertEqual(stream.wait(), OK, stream.err())
        return json.loads(stream.out())


class ListedNodesTest(SeveralNodesTest):
    """Two verifiers and two drafters, each named by a flag."""

    def setUp(self):
        super().setUp()
        self.verifiers = [self.start_verifier(*self.HTTP) for _ in range(2)]
        self.drafters = [self.start_drafter(*self.HTTP) for _ in range(2)]
        self.coordinator = self.start_coordinator(
            self.verifiers[0].address(), self.drafters[0].address(),
            "--verifier", self.verifiers[1].address(), "--drafter", self.drafters[1].address(), *self.HTTP)
        self.address = self.coordinator.address()
        self.wait_for(self.coordinator, "verifier", ready=2)
        self.wait_for(self.coordinator, "drafter", ready=2)

    def start_greedy(self, k=4):
        return self.start_generate(self.address, "--json-rounds", "--temperature", "0", "--ignore-eos", "-k", k,
                                   "--max-tokens", "60", PROMPT)

    def assert_serves(self, count=8, at_once=False):
        """New streams end well with the tokens of plain decoding, and drafts are used."""
        streams = []
        for _ in range(count):
            streams.append(self.start_greedy())
            if not at_once:
                streams[-1].wait()
        plain = self.ends_well(self.start_greedy(k=0))["token_ids"]
        for stream in streams:
            self.assertEqual(self.ends_well(stream)["token_ids"], plain)
        # Not by each of them: none waits for a drafter, and on a busy machine it is left alone for a while.
        wait_until("drafts are accepted", self.accepts_drafts, patience=120)

    def accepts_drafts(self):
        return sum(one["accepted"] for one in self.ends_well(self.start_greedy())["rounds"]) > 0

    def test_sessions_spread_over_all_nodes(self):
        for at_once in (True, False):
            before = [self.calls(node) for node in self.verifiers] + \
                     [self.calls(node, "Draft") for node in self.drafters]
            self.assert_serves(16, at_once)
            after = [self.calls(node) for node in self.verifiers] + \
                    [self.calls(node, "Draft") for node in self.drafters]
            for one, other in zip(before, after):
                self.assertGreater(other, one)

    def test_a_killed_verifier_is_left_out_and_used_again_when_it_is_back(self):
        gone = self.verifiers[0]
        gone.end(signal.SIGKILL)
        self.assert_serves()
        self.wait_for(self.coordinator, "verifier", ready=1, not_ready=1)
        self.assert_serves()
        back = self.start_verifier(*self.HTTP, listen=gone.address())
        self.wait_for(self.coordinator, "verifier", ready=2, not_ready=0)
        self.assert_serves(16, at_once=True)
        self.assertGreater(self.calls(back), 0)

    def test_a_killed_drafter_is_left_out_and_used_again_when_it_is_back(self):
        gone = self.drafters[0]
        gone.end(signal.SIGKILL)
        self.assert_serves()
        self.wait_for(self.coordinator, "drafter", ready=1, not_ready=1)
        self.assert_serves()
        back = self.start_drafter(*self.HTTP, listen=gone.address())
        self.wait_for(self.coordinator, "drafter", ready=2, not_ready=0)
        self.assert_serves(16, at_once=True)
        self.assertGreater(self.calls(back, "Draft"), 0)

    def coordinator_of_two_models(self, *flags):
        other = self.start_verifier(*self.HTTP, model=self.other_model())
        coordinator = self.start_coordinator(
            self.verifiers[0].address(), None, "--verifier", self.verifiers[1].address(),
            "--verifier", other.address(), *flags, *self.HTTP)
        coordinator.address()  # it serves
        return coordinator

    def test_old_and_new_weights_share_the_sessions_of_a_roll_out(self):
        coordinator = self.coordinator_of_two_models()
        self.wait_for(coordinator, "verifier", ready=3, refused=0)
        self.assertEqual(self.value(coordinator, "verifier_models"), 2)

    def test_weights_that_are_not_expected_are_refused(self):
        expected, = re.findall(r"weights ([0-9a-f]{64}) of", self.verifiers[0].err())
        coordinator = self.coordinator_of_two_models("--expect-weights", expected)
        self.wait_for(coordinator, "verifier", ready=2, refused=1)
        self.assertEqual(self.value(coordinator, "verifier_models"), 1)
        self.assertIn(f"but --expect-weights {expected}", coordinator.err())

    @staticmethod
    def other_model():
        from programs import DRAFT  # of the same tokenizer, and so fit but for its weights
        return DRAFT


class SimulatedNodesTest(SeveralNodesTest):
    """Slow nodes without weights, so that a stream lasts as long as a test needs it."""
    SLOW = ("--simulate", "--simulate-pass-ms", "30")

    def start_node(self, *flags, listen="127.0.0.1:0"):
        return self.start("outrider-verifier", *self.SLOW, *self.HTTP, "--listen", listen, *flags)

    def start_plain_coordinator(self, *verifiers, flags=(), inside=()):
        named = [word for verifier in verifiers for word in ("--verifier", verifier)]
        return self.start("outrider-coordinator", *named, *self.HTTP, "--listen", "127.0.0.1:0",
                          *flags, inside=inside)

    def start_stream(self, coordinator, *flags, tokens=100):
        return self.start_generate(coordinator.address(), "--json-rounds", "--temperature", "0", "--ignore-eos",
                                   "-k", "0", "--prompt-tokens", "5 7", "--max-tokens", tokens, *flags)

    def wait_for_move(self, coordinator):
        """Waits until a session has left a verifier that drains, or that its name no longer has."""
        wait_until("a session has moved", lambda: self.value(
            coordinator, "session_moves_total", peer="verifier", reason="draining") == 1)


class DrainTest(SimulatedNodesTest):
    def test_a_node_that_drains_gives_its_stream_to_another_and_gets_no_new_one(self):
        nodes = [self.start_node("--drain-seconds", "60") for _ in range(2)]
        coordinator = self.start_plain_coordinator(*(node.address() for node in nodes))
        coordinator.address()
        self.wait_for(coordinator, "verifier", ready=2)
        stream = self.start_stream(coordinator)
        draining, = wait_until("somebody serves the stream",
                               lambda: [node for node in nodes if self.calls(node) > 0])
        other, = [node for node in nodes if node is not draining]
        draining.send(signal.SIGTERM)
        self.wait_for_move(coordinator)
        for _ in range(6):
            self.ends_well(self.start_stream(coordinator, tokens=5))
        result = self.ends_well(stream)
        self.assertEqual(draining.wait(), OK, draining.err())
        self.assertEqual([node.err().count("session opened") for node in (draining, other)], [1, 7])
        self.assertEqual(result["token_ids"], self.ends_well(self.start_stream(coordinator))["token_ids"])


def can_unshare():
    try:
        subprocess.run(["unshare", "-m", "true"], check=True, capture_output=True)
        return True
    except (OSError, subprocess.CalledProcessError):
        return False


class NamedNodesTest(SimulatedNodesTest):
    """One name with an address a node, as a headless Service has."""

    def set_hosts(self, *addresses):
        # The file is mounted, and so is written in place.
        self.hosts.write_text("".join(f"{address} nodes.test\n" for address in addresses))

    def start_named(self, port, *flags):
        """A coordinator whose /etc/hosts is ours."""
        return self.start_plain_coordinator(
            f"nodes.test:{port}", flags=("--resolve-seconds", "1", *flags),
            inside=("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/hosts && exec "$@"', self.hosts))

    @unittest.skipUnless(can_unshare(), "NOT RUN: an /etc/hosts of its own needs root and a mount namespace, which are not "
                         "here. A Linux machine runs it as root, and a container with CAP_SYS_ADMIN")
    def test_addresses_come_and_go_and_a_stream_on_one_that_is_gone_moves(self):
        self.hosts = pathlib.Path(self.folder / "hosts")
        authority = Authority(self.folder)
        # A pod's certificate has the Service's name; its own address it has not.
        server = authority.flags("node", hosts=["nodes.test"], here=False)
        first = self.start_node(*server)
        port = first.address().rpartition(":")[2]
        second = self.start_node(*server, listen=f"127.0.0.2:{port}")
        second.address()
        self.set_hosts("127.0.0.1")
        client = authority.flags("client")
        coordinator = self.start_named(port, *client)
        coordinator.address()
        self.wait_for(coordinator, "verifier", ready=1)
        stream = self.start_stream(coordinator, *client, tokens=200)
        wait_until("the stream has begun", lambda: self.calls(first) > 0)

        self.set_hosts("127.0.0.2")
        self.wait_for_move(coordinator)
        on_first = self.calls(first)
        self.ends_well(self.start_stream(coordinator, *client, tokens=5))
        self.assertEqual(len(self.ends_well(stream)["token_ids"]), 200)
        self.assertEqual(self.calls(first), on_first)
        self.wait_for(coordinator, "verifier", ready=1, leaving=0)

        self.set_hosts("127.0.0.1", "127.0.0.2")
        self.wait_for(coordinator, "verifier", ready=2)
        self.set_hosts()
        wait_until("the name is gone", lambda: "has no address" in coordinator.err())
        self.ends_well(self.start_stream(coordinator, *client, tokens=5))
        self.wait_for(coordinator, "verifier", ready=2, leaving=0)
        for node in (first, second):
            node.end(signal.SIGKILL)
        self.wait_for(coordinator, "verifier", ready=0, not_ready=0)
        self.assert_refuses(self.start_stream(coordinator, *client), 1, "UNAVAILABLE", "no verifier is ready")

    def test_a_certificate_is_checked_for_the_name_and_not_for_its_address(self):
        authority = Authority(self.folder)
        node = self.start_node(*authority.flags("node", hosts=["localhost"], here=False))
        port = node.address().rpartition(":")[2]
        client = authority.flags("client")
        by_name = self.start_plain_coordinator(f"localhost:{port}", flags=client)
        by_name.address()
        self.wait_for(by_name, "verifier", ready=1)
        self.ends_well(self.start_stream(by_name, *client, tokens=5))
        by_address = self.start_plain_coordinator(f"127.0.0.1:{port}", flags=client)
        by_address.address()
        wait_until("it has been asked", lambda: "is not used: does not answer" in by_address.err())
        self.wait_for(by_address, "verifier", ready=0, not_ready=1)


if __name__ == "__main__":
    unittest.main()
