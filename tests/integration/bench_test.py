# SPDX-License-Identifier: Apache-2.0
"""`outrider bench` with the real programs: simulated nodes, a running deployment, Ctrl-C."""
import os
import pathlib
import signal
import unittest

from benching import FAILED, INTERRUPTED, LACKING, NO_TUNNELS, OK, SIMULATED, BenchingTest
from programs import BIN, wait_until


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


class BenchTest(BenchingTest):
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

    def test_where_connections_are_reset_it_ends_and_each_point_has_requests_that_ended(self):
        program = self.start_bench("run", *SIMULATED, "--simulate-acceptance", "0.8", "-k", "2",
                                   "--rtt", "50", "--seconds", "0.5",
                                   "--mean-bytes-to-reset", "20000")
        self.assertIn(program.wait(), (OK, FAILED), program.err())
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

    def test_a_node_that_dies_ends_the_sweep_and_is_named(self):
        program = self.start_bench("sweep", *SIMULATED, "--rtt", "0", "--concurrency", "1", "--seconds", "2")
        wait_until("a point is measured", lambda: "1/" in program.err())
        verifier, = (pid for pid in children_of(program.process.pid)
                     if b"outrider-verifier" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes())
        os.kill(verifier, signal.SIGKILL)
        self.assertEqual(program.wait(), FAILED)
        self.assertIn("outrider-verifier ended with status 137", program.err())
        self.assertLess(len(self.results()), 5)
        self.assertEqual([row["failures"] for row in self.results()], [0] * len(self.results()))

    def test_a_model_that_does_not_load_is_said_in_its_own_words(self):
        program = self.start_bench("run", "--target-model", self.folder / "none",
                                   "--draft-model", self.folder / "none")
        self.assertEqual(program.wait(), FAILED)
        self.assertIn("no such directory", program.err())
        # Nothing was measured: there is no report, and nothing stands in the way of another try.
        self.assertEqual([path.name for path in self.out.iterdir()], ["results.jsonl"])
        self.bench("run", *SIMULATED, "-k", "0", "--seconds", "0.1")


if __name__ == "__main__":
    unittest.main()
