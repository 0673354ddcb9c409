# SPDX-License-Identifier: Apache-2.0
"""`outrider bench` with the real programs: a trio of its own, simulated nodes, Ctrl-C."""
import json
import os
import pathlib
import signal
import unittest

from programs import BIN, ProgramTest, wait_until
from tunnels import lacks_tunnels

OK, FAILED, INTERRUPTED = 0, 1, 130
SIMULATED = ("--simulate", "--simulate-verify-ms", "4", "--simulate-draft-ms", "0.5")
LACKING = lacks_tunnels()
NO_TUNNELS = (f"NOT RUN: tunnels need {LACKING} here. A Linux machine runs it as root, and a container with CAP_SYS_ADMIN, "
              "CAP_NET_ADMIN and /dev/net/tun")


def addresses():
    """What the kernel routes to this machine's own devices."""
    return pathlib.Path("/proc/net/fib_trie").read_text()


def children_of(pid):
    """Process ids whose parent this one is."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # gone meanwhile
        if int(fields[1]) == pid:
            found.append(int(stat.parent.name))
    return found


class BenchTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.out = self.folder / "results"

    def start_bench(self, *arguments):
        return self.start("outrider", "bench", *arguments, "--out", self.out)

    def bench(self, *arguments, status=OK):
        for again in ((), ("--resume",), ("--resume",)):
            program = self.start_bench(*arguments, *again)
            found = program.wait()
            # It measures nothing while the machine stands still, and says so.
            if "this machine is too busy to emulate it" not in program.err():
                break
        self.assertEqual(found, status, program.err())
        return program

    def results(self):
        text = (self.out / "results.jsonl").read_text("utf-8")
        return [json.loads(line) for line in text.splitlines()]

    def test_a_trio_of_real_models_is_measured_through_a_network(self):
        # So long that a busy machine meets it within 5 %.
        self.bench("run", "--rtt", "50", "-k", "3", "--seconds", "0.2", "--max-tokens", "16")
        plain, drafted = self.results()
        self.assertEqual((plain["k"], drafted["k"]), (0, 3))
        for row in (plain, drafted):
            self.assertEqual(row["failures"], 0)
            self.assertEqual(row["misses"], 0)
            self.assertEqual(row["tokens"], 16 * row["requests"])
            self.assertGreaterEqual(row["achieved_verifier_rtt_ms"], 50)
            self.assertGreater(row["plain_in_verifier_token_ms"], 0)
            self.assertGreater(row["speedup_over_k0_same_network"], 0)
        # A verification is a request and a reply.
        self.assertAlmostEqual(plain["verifier_messages_per_token"], 2)
        self.assertEqual(plain["drafter_bytes_per_token"], 0)
        self.assertGreater(drafted["drafter_bytes_per_token"], 0)
        self.assertEqual(len(drafted["offered_by_position"]), 3)
        self.assertIn("</html>", (self.out / "report.html").read_text("utf-8"))

    @unittest.skipIf(LACKING, NO_TUNNELS)
    def test_nodes_behind_tunnels_are_a_true_round_trip_away(self):
        self.bench("run", *SIMULATED, "--simulate-acceptance", "0.8", "--network", "tunnel",
                   "--rtt", "50", "--drafter-rtt", "40", "--jitter", "1", "-k", "2",
                   "--seconds", "0.3")
        for row in self.results():
            self.assertEqual(row["failures"], 0)
            self.assertGreaterEqual(row["achieved_verifier_rtt_ms"], 48)
            self.assertGreaterEqual(row["achieved_drafter_rtt_ms"], 38)
        self.assertIn("network namespaces", (self.out / "report.md").read_text("utf-8"))

    @unittest.skipIf(LACKING, NO_TUNNELS)
    def test_a_program_behind_a_tunnel_ends_with_it_and_leaves_nothing(self):
        program = self.start("outrider-tunnel", "--rtt", "10", "--jitter", "4", "--network", "1",
                             "--", BIN / "outrider-verifier", "--simulate", "--insecure",
                             "--listen", "{host}:0")
        self.assertRegex(program.address(), r"^198\.18\.1\.2:\d+$")
        self.assertIn("198.18.1.1", addresses())
        self.assertEqual(program.end(signal.SIGTERM), OK)
        self.assertNotIn("198.18.1.1", addresses())

    def test_simulated_nodes_are_marked_and_accept_as_they_were_told(self):
        self.bench("run", *SIMULATED, "--simulate-acceptance", "1", "-k", "4",
                   "--seconds", "0.3", "--acceptance-rule", "rejection")
        plain, drafted = self.results()
        self.assertEqual(drafted["accepted_by_position"], drafted["offered_by_position"])
        for row in (plain, drafted):
            self.assertIs(row["simulated"], True)
            self.assertRegex(row["date"], r"^\d{4}-\d\d-\d\d \d\d:\d\d UTC$")
            self.assertRegex(row["commit"], r"^[-_.A-Za-z0-9]+$")
        for name in ("report.md", "report.html"):
            self.assertIn("Simulated nodes", (self.out / name).read_text("utf-8"))

    def test_simulated_nodes_say_so_to_whoever_asks(self):
        flags = ("--simulate", "--listen", "127.0.0.1:0")
        verifier = self.start("outrider-verifier", *flags)
        drafter = self.start("outrider-drafter", *flags)
        coordinator = self.start(
            "outrider-coordinator", "--listen", "127.0.0.1:0",
            "--verifier", verifier.address(), "--drafter", drafter.address())
        address = coordinator.address()
        table = self.wait_for_nodes(address, "verifier", "drafter")
        self.assertIn("simulated-target is simulated", table)
        self.assertIn("simulated-draft is simulated", table)
        # A running deployment is measured the same way, and marked.
        prompts = self.folder / "prompts.jsonl"
        prompts.write_text("".join(f'{{"prompt": [{i}, 1]}}\n' for i in range(20)))
        self.bench("run", "--coordinator", address, "--prompts", prompts, "--seconds", "0.1",
                   "-k", "2")
        self.assertIn("Simulated nodes", (self.out / "report.md").read_text("utf-8"))

    def test_every_request_is_accounted_for_where_connections_are_reset(self):
        program = self.start_bench("run", *SIMULATED, "--simulate-acceptance", "0.8", "-k", "2",
                                   "--rtt", "50", "--seconds", "0.5",
                                   "--mean-bytes-to-reset", "20000")
        self.assertIn(program.wait(), (OK, FAILED), program.err())
        # Whatever became of the requests, each is accounted for.
        for row in self.results():
            self.assertGreater(row["requests"] + row["failures"], 0)

    def test_an_interrupt_keeps_what_was_measured_and_leaves_no_process(self):
        # There is no network, as a busy machine may not meet a short round trip.
        cells = ["--rtt", "0", "--concurrency", "1,2,4,8", "--seconds", "0.3"]
        program = self.start_bench("sweep", *SIMULATED, "--simulate-acceptance", "0.5", *cells)
        wait_until("a point is measured", lambda: "1/" in program.err())
        children = children_of(program.process.pid)
        self.assertEqual(len(children), 4)
        self.assertEqual(program.end(signal.SIGINT), INTERRUPTED)
        self.assertIn("--resume", program.err())
        for pid in children:
            with self.assertRaises(ProcessLookupError):
                os.kill(pid, 0)
        num_kept = len(self.results())
        self.assertGreater(num_kept, 0)
        self.assertIn("</html>", (self.out / "report.html").read_text("utf-8"))
        self.bench("sweep", *SIMULATED, "--simulate-acceptance", "0.5", *cells, "--resume")
        self.assertEqual(len(self.results()), 20)

    def test_a_model_that_does_not_load_is_said_in_its_own_words(self):
        program = self.start_bench("run", "--target-model", self.folder / "none",
                                   "--draft-model", self.folder / "none")
        self.assertEqual(program.wait(), FAILED)
        self.assertIn("no such directory", program.err())


if __name__ == "__main__":
    unittest.main()
