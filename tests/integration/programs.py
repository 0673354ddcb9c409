# SPDX-License-Identifier: Apache-2.0
"""The real programs as child processes, for tests on bad input and on faults."""
import os
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.environ["OUTRIDER_SOURCE_DIR"], "tools"))
from program import PATIENCE, wait_until, Program  # noqa: E402,F401  (tests import these from here)

BIN = pathlib.Path(os.environ["OUTRIDER_BIN_DIR"])
MODELS = pathlib.Path(os.environ["OUTRIDER_SOURCE_DIR"]) / "models"
TARGET, DRAFT = MODELS / "demo-target", MODELS / "demo-draft"


def own_loopback():
    """A host of this process's own: the port of a program that has ended is not taken by a test that runs beside."""
    pid = os.getpid()  # below 2^22
    return f"127.{1 + (pid >> 16)}.{pid >> 8 & 255}.{pid & 255}"


class ProgramTest(unittest.TestCase):
    """Starts programs, on free ports, and ends them with the test."""

    HOST = "127.0.0.1"

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="outrider-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, name, *arguments, inside=()):
        program = Program(BIN / name, *arguments, inside=inside)
        self.addCleanup(program.close)
        return program

    def start_verifier(self, *arguments, model=TARGET, listen=None):
        return self.start_node("outrider-verifier", model, listen, *arguments)

    def start_drafter(self, *arguments, model=DRAFT, listen=None):
        return self.start_node("outrider-drafter", model, listen, *arguments)

    def start_node(self, name, model, listen, *arguments):
        """Gives it one thread: tests run side by side, and a pass of a model so small gains nothing from more."""
        return self.start(name, "--threads", 1, "--model", model, "--listen", listen or f"{self.HOST}:0", *arguments)

    def start_coordinator(self, verifier, drafter=None, *arguments, tokenizer=TARGET):
        drafter_flags = ["--drafter", drafter] if drafter else []
        return self.start("outrider-coordinator", "--verifier", verifier, *drafter_flags,
                          "--tokenizer", tokenizer, "--listen", f"{self.HOST}:0", *arguments)

    def start_generate(self, coordinator, *arguments):
        return self.start("outrider", "generate", "--coordinator", coordinator, *arguments)

    def generate(self, coordinator, *arguments):
        """Runs `outrider generate` to its end, and returns the program."""
        program = self.start_generate(coordinator, *arguments)
        program.wait()
        return program

    def describe(self, coordinator):
        program = self.start("outrider", "describe", "--coordinator", coordinator)
        program.wait()
        return program.out()

    def wait_for_nodes(self, coordinator, *roles):
        """Waits until `outrider describe` lists these; returns the table."""
        def listed():
            table = self.describe(coordinator)
            return table if all(re.search(rf"^{role} ", table, re.M) for role in roles) else None
        return wait_until(f"{coordinator} has found {roles}", listed)

    def assert_refuses(self, program, status, *words):
        """It has ended by itself with one line on standard error that has these words."""
        self.assertEqual(program.wait(), status, program.err())
        # What is logged on the way has a date and a level; the reason comes last.
        lines = [line for line in program.err().splitlines() if not re.match(r"\d{4}-", line)]
        self.assertEqual(len(lines), 1, program.err())
        self.assertTrue(lines[0].startswith(program.name + ": "), lines[0])
        for word in words:
            self.assertIn(word, lines[0])
