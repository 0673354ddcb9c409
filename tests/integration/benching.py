# SPDX-License-Identifier: Apache-2.0
"""What the tests of `outrider bench` have in common."""
import json

from programs import ProgramTest
from tunnels import lacks_tunnels

OK, FAILED, INTERRUPTED = 0, 1, 130
SIMULATED = ("--simulate", "--simulate-verify-ms", "4", "--simulate-draft-ms", "0.5")
LACKING = lacks_tunnels()
NO_TUNNELS = (f"NOT RUN: tunnels need {LACKING} here. A Linux machine runs it as root, and a container with CAP_SYS_ADMIN, "
              "CAP_NET_ADMIN and /dev/net/tun")


class BenchingTest(ProgramTest):
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
