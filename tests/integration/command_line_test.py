# SPDX-License-Identifier: Apache-2.0
"""What the programs print: help for a terminal of 80 columns, and what they log of themselves."""
import subprocess
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


class LogTest(ProgramTest):
    def test_who_has_no_weights_names_none(self):
        drafter = self.start_drafter("--strategy", "ngram", model=TARGET)
        drafter.address()
        self.assertNotIn("weights", drafter.err())


if __name__ == "__main__":
    unittest.main()
