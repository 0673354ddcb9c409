# SPDX-License-Identifier: Apache-2.0
"""What the programs print: help for a terminal of 80 columns, nodes as JSON or as wide as the terminal is, and a
failure where it cannot be written."""
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import unittest

from programs import BIN, TARGET, ProgramTest

COMMANDS = [["outrider"], ["outrider", "generate"], ["outrider", "describe"], ["outrider", "bench"],
            ["outrider", "bench", "run"], ["outrider", "bench", "sweep"], ["outrider-coordinator"], ["outrider-drafter"],
            ["outrider-verifier"]]


def run(words, **options):
    return subprocess.run([BIN / words[0], *words[1:]], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False, timeout=60, **options)


class HelpTest(unittest.TestCase):
    def test_it_fits_a_terminal_and_has_nothing_of_the_library(self):
        for words in COMMANDS:
            done = run([*words, "--help"], stdout=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (0, ""), words)
            for line in done.stdout.splitlines():
                self.assertLessEqual(len(line), 80, f"{words}: {line}")
                self.assertNotRegex(line, r"\{(true|false)\}|->", words)

    def test_of_streams_speaks_only_what_has_them(self):
        text = [" ".join(run(["outrider", command, "--help"], stdout=subprocess.PIPE).stdout.split())
                for command in ("generate", "describe")]
        self.assertIn("a stream that breaks goes on there", text[0])
        self.assertNotIn("stream", text[1])
        for one in text:
            self.assertIn("where one is down the next is asked", one)


class UnwrittenTest(ProgramTest):
    def test_help_and_versions(self):
        for words in (*([*words, "--help"] for words in COMMANDS), ["outrider", "--version"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run(words, stdout=full)
            self.assertEqual(done.returncode, 1, words)
            self.assertEqual(done.stderr, f"{words[0]}: cannot write to the output\n")

    def test_nodes(self):
        address = self.start_coordinator("127.0.0.1:1").address()
        for words in ([], ["--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run(["outrider", "describe", "--coordinator", address, *words], stdout=full)
            self.assertEqual((done.returncode, done.stderr),
                             (1, "outrider: DATA_LOSS: cannot write to the output\n"), words)

    def test_measurements(self):
        for words in (["outrider-verifier", "--simulate"], ["outrider-verifier", "--simulate", "--json"],
                      ["outrider-drafter", "--simulate"], ["outrider-drafter", "--simulate", "--json"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = run([*words, "--simulate-pass-ms", "0", "--measure"], stdout=full)
            self.assertEqual(done.returncode, 1, words)
            self.assertEqual(done.stderr.splitlines()[-1], f"{words[0]}: cannot write to the output", words)


class MeasureTest(ProgramTest):
    def test_it_names_the_kernels(self):
        node = ["--model", TARGET, "--measure", "--kernels", "portable", "--threads", "1"]
        for name in "outrider-verifier", "outrider-drafter":
            self.assertIn(", kernels portable", run([name, *node], stdout=subprocess.PIPE).stdout)
            done = run([name, *node, "--json"], stdout=subprocess.PIPE)
            self.assertEqual(json.loads(done.stdout)["kernels"], "portable")
            self.assertRegex(done.stderr, r" I kernels portable\n")


class DescribeTest(ProgramTest):
    def describe_on(self, address, columns):
        """What it prints to a terminal of so many columns."""
        ours, terminal = pty.openpty()
        try:
            fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
            done = run(["outrider", "describe", "--coordinator", address], stdout=terminal)
            self.assertEqual(done.returncode, 0, done.stderr)
            return os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
        finally:
            os.close(ours)
            os.close(terminal)

    def test_a_terminal_and_a_program_get_what_they_can_read(self):
        address = self.start_coordinator("127.0.0.1:1").address()
        wide, narrow = self.describe_on(address, 250), self.describe_on(address, 30)
        self.assertIn("role ", wide)
        self.assertIn("no verifier is ready: nothing can be generated\n", wide)
        self.assertNotIn("role ", narrow)
        self.assertLessEqual(max(map(len, narrow.splitlines())), 30, narrow)
        # What is no terminal gets lines, however long they are.
        self.assertEqual(self.describe(address), wide)
        said = json.loads(run(["outrider", "describe", "--coordinator", address, "--json"], stdout=subprocess.PIPE).stdout)
        self.assertEqual(said, {"verifiers": [], "drafters": [], "refused_verifiers": [], "refused_drafters": [],
                                "has_tokenizer": True})


class LogTest(ProgramTest):
    def test_who_has_no_weights_names_none(self):
        drafter = self.start_drafter("--strategy", "ngram", model=TARGET)
        drafter.address()
        self.assertNotIn("weights", drafter.err())

    def test_in_json_the_reason_of_an_end_is_a_line_too(self):
        missing = self.folder / "missing"
        for name, flags in (("outrider-verifier", ["--model", missing]), ("outrider-drafter", ["--model", missing]),
                            ("outrider-drafter", ["--model", missing, "--check-config"]),
                            ("outrider-drafter", ["--model", TARGET, "--strategy", "ngram", "--expect-weights", "5" * 64]),
                            ("outrider-coordinator", ["--verifier", "127.0.0.1:1", "--tokenizer", missing])):
            with self.subTest(name=name, flags=flags):
                done = run([name, "--log-json", *flags], stdout=subprocess.PIPE)
                self.assertNotEqual(done.returncode, 0)
                last = [json.loads(line) for line in done.stderr.splitlines()][-1]
                self.assertEqual((last["level"], last["program"]), ("error", name))
                self.assertIn("expect-weights" if "--strategy" in flags else str(missing), last["message"])


if __name__ == "__main__":
    unittest.main()
