# SPDX-License-Identifier: Apache-2.0
"""The real programs as child processes, for tests on bad input and on faults."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

BIN = pathlib.Path(os.environ["OUTRIDER_BIN_DIR"])
MODELS = pathlib.Path(os.environ["OUTRIDER_SOURCE_DIR"]) / "models"
TARGET, DRAFT = MODELS / "demo-target", MODELS / "demo-draft"
# Far beyond what anything here takes, so that only a hang fails.
PATIENCE = 60


def wait_until(what, condition, patience=PATIENCE):
    """Polls until `condition()` is true, and returns what it was."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if value := condition():
            return value
        time.sleep(0.02)
    raise AssertionError(f"waited {patience} s in vain: {what}")


class Program:
    """A program that runs; what it prints goes to files, which are read back."""

    def __init__(self, folder, name, *arguments, inside=()):
        """`inside`: the words of a command that becomes the program."""
        self.name = name
        self._out = open(folder / f"{name}-{time.monotonic_ns()}.out", "w+b")
        self._err = open(self._out.name + ".err", "w+b")
        words = [word if isinstance(word, bytes) else str(word) for word in arguments]
        self.process = subprocess.Popen([*inside, BIN / name, *words], stdin=subprocess.DEVNULL,
                                        stdout=self._out, stderr=self._err)

    def out(self):
        return pathlib.Path(self._out.name).read_text("utf-8", "replace")

    def err(self):
        return pathlib.Path(self._err.name).read_text("utf-8", "replace")

    def address(self):
        """The HOST:PORT it says it listens on."""
        def listening():
            if match := re.search(r"listening on (\S+)", self.out()):
                return match[1]
            if self.process.poll() is not None:
                raise AssertionError(f"{self.name} ended before it listened: {self.err()}")
            return None
        return wait_until(f"{self.name} listens", listening)

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        """Sends a signal and waits: the exit status."""
        self.send(number)
        return self.wait()

    def wait(self):
        return self.process.wait(PATIENCE)

    def close(self):
        if self.process.poll() is None:
            self.process.kill()  # which ends a stopped process, too
            self.process.wait()
        self._out.close()
        self._err.close()


class ProgramTest(unittest.TestCase):
    """Starts programs, on free ports, and ends them with the test."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="outrider-test-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def start(self, name, *arguments, inside=()):
        program = Program(self.folder, name, *arguments, inside=inside)
        self.addCleanup(program.close)
        return program

    def start_verifier(self, *arguments, model=TARGET, listen="127.0.0.1:0"):
        return self.start("outrider-verifier", "--model", model, "--listen", listen, *arguments)

    def start_drafter(self, *arguments, model=DRAFT, listen="127.0.0.1:0"):
        return self.start("outrider-drafter", "--model", model, "--listen", listen, *arguments)

    def start_coordinator(self, verifier, drafter=None, *arguments, tokenizer=TARGET):
        drafter_flags = ["--drafter", drafter] if drafter else []
        return self.start("outrider-coordinator", "--verifier", verifier, *drafter_flags,
                          "--tokenizer", tokenizer, "--listen", "127.0.0.1:0", *arguments)

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
        """Until `outrider describe` lists these; then the table."""
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
