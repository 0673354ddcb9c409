# SPDX-License-Identifier: Apache-2.0
"""One of our programs as a child process: for the demo, and for tests on the real programs."""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

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
    """A program that runs; what it prints goes to files without a name, which are read back."""

    def __init__(self, path, *arguments, inside=(), own_session=False, environment=None):
        """`inside`: the words of a command that becomes the program. With a session
        of its own, Ctrl-C on our terminal does not reach it. `environment`: None is ours."""
        self.name = pathlib.Path(path).name
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        words = [word if isinstance(word, bytes) else str(word) for word in arguments]
        self.process = subprocess.Popen([*inside, path, *words], stdin=subprocess.DEVNULL, stdout=self._out,
                                        stderr=self._err, start_new_session=own_session, env=environment)

    def out(self):
        return _read_all(self._out)

    def err(self):
        return _read_all(self._err)

    def runs(self):
        return self.process.poll() is None

    def address(self, patience=PATIENCE):
        """Blocks until it has said where it listens: HOST:PORT."""
        def listening():
            if match := re.search(r"listening on (\S+)", self.out()):
                return match[1]
            if not self.runs():
                raise AssertionError(f"{self.name} ended before it listened: {self.err()}")
            return None
        return wait_until(f"{self.name} listens", listening, patience)

    def send(self, number):
        self.process.send_signal(number)

    def end(self, number=signal.SIGTERM):
        """Sends a signal and waits: the exit status."""
        self.send(number)
        return self.wait()

    def wait(self, patience=PATIENCE):
        return self.process.wait(patience)

    def close(self):
        if self.runs():
            self.process.kill()  # which ends a stopped process, too
            self.process.wait()
        self._out.close()
        self._err.close()


def stop_all(programs, patience):
    """Ends them, and returns their exit statuses in the same order: None is one that ignored SIGTERM and was killed.

    All are told before the first is waited for, and whatever ends the wait, such as a second Ctrl-C, leaves none
    behind. What they wrote can still be read.
    """
    try:
        for program in reversed(programs):
            program.send(signal.SIGTERM)
        end = time.monotonic() + patience
        return [_status_by(end, program) for program in programs]
    finally:
        for program in programs:
            program.process.kill()
        for program in programs:
            program.wait()


def _status_by(end, program):
    try:
        return program.wait(max(0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return None


def _read_all(file):
    # Not by the file's own place, which is that of the child's writes.
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode("utf-8", "replace")
