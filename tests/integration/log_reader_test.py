# SPDX-License-Identifier: Apache-2.0
"""The real programs when whoever reads their log goes away, or reads nothing."""
import os
import signal
import time
import unittest

from programs import ProgramTest, wait_until

FAILED = 1
PLAIN = ("-k", "0", "--prompt-tokens", "1 2 3", "--max-tokens", "4", "--timeout", "20")


class LogReaderTest(ProgramTest):
    def setUp(self):
        super().setUp()
        self.pipe = self.folder / "log"
        os.mkfifo(self.pipe)
        # Both ends, so that neither program nor test waits for the other to open it.
        self.end = os.open(self.pipe, os.O_RDWR | os.O_NONBLOCK)
        self.addCleanup(lambda: self.end is None or os.close(self.end))

    def start_logging(self, name, *arguments):
        """The program with its standard error in the pipe."""
        return self.start(name, "--listen", "127.0.0.1:0", *arguments,
                          inside=("bash", "-c", 'exec "$@" 2>"$0"', self.pipe))

    def start_both(self):
        self.verifier = self.start_logging("outrider-verifier", "--simulate")
        self.coordinator = self.start_logging("outrider-coordinator", "--verifier", self.verifier.address())
        self.address = self.coordinator.address()
        self.wait_for_nodes(self.address, "verifier")

    def assert_serves(self):
        program = self.generate(self.address, *PLAIN)
        self.assertEqual(program.wait(), 0, program.err())

    def read(self):
        try:
            return os.read(self.end, 1 << 20).decode()
        except BlockingIOError:
            return ""

    def test_one_that_goes_away_ends_no_server(self):
        self.start_both()
        wait_until("both have logged", lambda: self.read())
        os.close(self.end)
        self.end = None
        for _ in range(2):
            self.assert_serves()
        for program in (self.coordinator, self.verifier):
            self.assertTrue(program.runs(), program.process.poll())
            self.assertEqual(program.end(signal.SIGTERM), 0)

    def test_one_that_reads_nothing_stops_no_server(self):
        try:
            while True:
                os.write(self.end, b"." * 4096)  # until the pipe is full
        except BlockingIOError:
            pass
        self.start_both()
        for _ in range(2):
            self.assert_serves()
        self.assertEqual(self.read().strip("."), "")
        self.assert_serves()
        self.assertRegex(self.read(), r"W \d+ log lines are lost: they could not be written\n.* I ")

    def test_requests_that_are_refused_do_not_fill_it(self):
        self.start_both()
        self.read()
        begin = time.monotonic()
        for _ in range(20):
            self.assertEqual(self.generate(self.address, *PLAIN, "--logit-bias", "400000000=1").wait(), FAILED)
        lines = self.read().count("refused: INVALID_ARGUMENT")
        self.assertGreaterEqual(lines, 1)
        self.assertLessEqual(lines, 2 + time.monotonic() - begin)
        time.sleep(1)
        self.generate(self.address, *PLAIN, "--logit-bias", "400000000=1")
        self.assertRegex(self.read(), r"refused: INVALID_ARGUMENT.* \(\d+ more like it before\)")


if __name__ == "__main__":
    unittest.main()
